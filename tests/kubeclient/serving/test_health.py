"""The health server: checks, metrics and further pages."""

import asyncio

import aiohttp

from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.serving import health
from eclectus.kubeclient.serving.pages import QueryError


def speeds(query):
    if "bad" in query:
        raise QueryError("bad is not a field")
    yield b"["
    yield b"]"


def pages(*paths, live="", ready=""):
    """(status, content type, text) of each path, while the checks report this."""
    app = health.application(
        {"loop": lambda: live}, {"sync": lambda: ready}, lambda: b"up 1\n", {"/speeds": speeds}
    )

    async def ask():
        listening = listen("127.0.0.1", 0)
        address = bound_address(listening)
        async with health.serving(app, listening), aiohttp.ClientSession() as session:
            return [await page(session, f"http://{address}{path}") for path in paths]

    async def page(session, url):
        async with session.get(url) as answer:
            return answer.status, answer.content_type, await answer.text()

    return asyncio.run(ask())


def test_a_healthy_process_answers_ok_and_lists_its_checks_on_request():
    plain, verbose = pages("/readyz", "/readyz?verbose")
    assert plain == (200, "text/plain", "ok")
    assert verbose[2] == "[+]loop ok\n[+]sync ok\nreadyz check passed\n"


def test_a_process_that_is_not_ready_is_still_alive():
    ready, live, healthz = pages("/readyz", "/livez", "/healthz", ready="no lists yet")
    assert ready == (503, "text/plain", "[+]loop ok\n[-]sync failed: no lists yet\nreadyz check failed\n")
    assert live == healthz == (200, "text/plain", "ok")


def test_a_process_that_is_not_alive_is_not_ready():
    found = pages("/readyz", "/livez", live="hung")
    assert [status for status, _, _ in found] == [503, 503]


def test_metrics_and_further_pages_have_their_content_types():
    assert pages("/metrics", "/speeds") == [(200, "text/plain", "up 1\n"), (200, "application/json", "[]")]


def test_a_wrong_query_is_answered_with_what_is_wrong():
    assert pages("/speeds?bad=1") == [(400, "text/plain", "bad is not a field\n")]
