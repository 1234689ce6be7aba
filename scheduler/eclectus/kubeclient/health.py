"""Probes, metrics and learned speeds over HTTP, on the loop they report on: a hung loop answers no probe."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
from aiohttp import web

from eclectus.framework import LearnedCell
from eclectus.live.metrics import Metrics

Check = Callable[[], str]
"""What is wrong, in words; empty when nothing is."""


def application(
    live: Mapping[str, Check],
    ready: Mapping[str, Check],
    metrics: Metrics,
    learned: Callable[[], Sequence[LearnedCell]],
) -> web.Application:
    """/healthz and /livez ask the `live` checks, /readyz those and the `ready` ones.

    /speeds is a JSON list of `Learned` (core/seam.py): every learned rate, and how sure it is.
    """

    async def expose(_: web.Request) -> web.StreamResponse:
        return web.Response(
            body=metrics.expose(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    async def speeds(_: web.Request) -> web.StreamResponse:
        return web.Response(body=msgspec.json.encode(learned()), content_type="application/json")

    app = web.Application()
    app.router.add_get("/healthz", _probe("healthz", live))
    app.router.add_get("/livez", _probe("livez", live))
    app.router.add_get("/readyz", _probe("readyz", {**live, **ready}))
    app.router.add_get("/metrics", expose)
    app.router.add_get("/speeds", speeds)
    return app


def _probe(name: str, checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(request: web.Request) -> web.StreamResponse:
        found = {check: ask() for check, ask in checks.items()}
        wrong = any(found.values())
        text = report(name, found) if wrong or "verbose" in request.query else "ok"
        return web.Response(text=text, status=503 if wrong else 200)

    return answer


def report(name: str, found: Mapping[str, str]) -> str:
    """One line a check, as the API server's own probes write them."""
    lines = [f"[-]{check} failed: {wrong}" if wrong else f"[+]{check} ok" for check, wrong in found.items()]
    verdict = "failed" if any(found.values()) else "passed"
    return "\n".join([*lines, f"{name} check {verdict}", ""])


async def serve(app: web.Application, address: str, port: int) -> tuple[web.AppRunner, str]:
    """Listen; the runner to clean up, and `address:port` as it turned out."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, address, port).start()
    host, taken = runner.addresses[0][:2]
    return runner, f"{host}:{taken}"
