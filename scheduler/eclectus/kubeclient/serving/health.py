"""Health checks and metrics over HTTP, on the loop whose health they report: a hung loop does not answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from socket import socket

from aiohttp import web

from eclectus.kubeclient.serving.pages import BusyError, PageMaker, PageParts, QueryError

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
RETRY_SECONDS = "1"  # after which a client that was refused asks again
SHUTDOWN_SECONDS = 1.0  # a client that reads slowly does not keep the process
Check = Callable[[], str]
"""What is wrong, as text; empty if nothing is."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(
    live: Mapping[str, Check],
    ready: Mapping[str, Check],
    metrics: Callable[[], bytes],
    json_pages: Mapping[str, PageParts] | None = None,
) -> web.Application:
    """/livez and /healthz run the `live` checks, /readyz those and the `ready` ones.

    `metrics` returns the page /metrics, in Prometheus' text format; `json_pages` are further paths.
    """
    app = web.Application()
    app.router.add_get("/healthz", _checking("healthz", live))
    app.router.add_get("/livez", _checking("livez", live))
    app.router.add_get("/readyz", _checking("readyz", {**live, **ready}))
    app.router.add_get("/metrics", _page(lambda _: [metrics()], METRICS_TYPE))
    for path, parts in (json_pages or {}).items():
        app.router.add_get(path, _page(parts, "application/json"))
    return app


def report(name: str, found: Mapping[str, str]) -> str:
    """One line per check, as the API server's own health checks write them."""
    lines = [f"[-]{check} failed: {wrong}" if wrong else f"[+]{check} ok" for check, wrong in found.items()]
    verdict = "failed" if any(found.values()) else "passed"
    return "\n".join([*lines, f"{name} check {verdict}", ""])


async def serve(app: web.Application, listening: socket) -> web.AppRunner:
    """Answer requests to the socket. The runner is to be cleaned up, which closes the socket."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    return runner


def _checking(name: str, checks: Mapping[str, Check]) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        found = {check: run() for check, run in checks.items()}
        is_wrong = any(found.values())
        text = report(name, found) if is_wrong or "verbose" in request.query else "ok"
        return web.Response(text=text, status=503 if is_wrong else 200)

    return answer


def _page(parts: PageParts, content_type: str) -> Handler:
    maker = PageMaker(parts)

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            body = await maker.body(request.query)
        except QueryError as error:
            return web.Response(text=f"{error}\n", status=400)
        except BusyError as error:
            return web.Response(text=f"{error}\n", status=429, headers={"Retry-After": RETRY_SECONDS})
        return web.Response(body=body, headers={"Content-Type": content_type})

    return answer
