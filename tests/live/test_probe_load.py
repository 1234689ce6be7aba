"""Telling the operator how busy the cluster is: nothing of it may stop the scheduler or flood the server."""

import asyncio
from contextlib import asynccontextmanager
from functools import wraps

import pytest

from eclectus.api.names import NODE_PROBES_PATH
from eclectus.api.node_probe import load_of
from eclectus.live.learned.probe_load import ProbeLoad
from eclectus.model.learned import LearnedLoad

NOW = 1_800_000_000.0
KNOWN = LearnedLoad(2.0, 10.0, (("web", 1.0),))
LIST, PATCH = f"GET {NODE_PROBES_PATH}", f"PATCH {NODE_PROBES_PATH}/p/status"


def alone(story):
    """A test that is a coroutine, in a loop of its own."""

    @wraps(story)
    def run(**fixtures):
        asyncio.run(story(**fixtures))

    return run


def page(*names, more="", load=None):
    status = {"load": load} if load else {}
    items = [{"metadata": {"name": name}, "status": status} for name in names]
    return {"metadata": {"continue": more}, "items": items}


@asynccontextmanager
async def telling(server, known=KNOWN, leads=True):
    async with server.means() as means:
        made = ProbeLoad(means, lambda now: known, lambda: NOW, lambda: leads, 0.01)
        task = asyncio.create_task(made.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled(), "it never ends by itself"


@alone
async def test_every_node_probe_is_told_page_by_page(server, answers, until):
    server.on(LIST, answers.says(page("p", more="next")), answers.says(page("q")))
    server.on(PATCH, answers.says({}))
    server.on(f"PATCH {NODE_PROBES_PATH}/q/status", answers.says({}))
    async with telling(server):
        await until(lambda: server.count(f"PATCH {NODE_PROBES_PATH}/q/status"))
    body = next(body for what, _, body in server.asked if what == PATCH)
    assert body == {"status": {"load": load_of(KNOWN, NOW)}}


@alone
async def test_what_stands_there_is_not_said_again(server, answers, until):
    server.on(LIST, answers.says(page("p", load=load_of(KNOWN, NOW))))
    async with telling(server):
        await until(lambda: server.count(LIST) >= 5)
    assert server.count(PATCH) == 0


@pytest.mark.parametrize("status", [403, 404, 409, 500])
@alone
async def test_a_server_that_refuses_is_asked_again(server, answers, until, status):
    server.on(LIST, answers.says({"message": "no"}, status), answers.says(page("p")))
    server.on(PATCH, answers.says({"message": "no"}, status), answers.says({}))
    async with telling(server):
        await until(lambda: server.count(PATCH) >= 2)


@alone
async def test_who_does_not_lead_or_does_not_know_asks_nothing(server, until):
    async with telling(server, leads=False):
        await asyncio.sleep(0.1)
    async with telling(server, known=None):
        await asyncio.sleep(0.1)
    assert server.asked == []
