"""/livez, /readyz and /metrics, on the loop that elects: a hung loop answers none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

from eclectus_operator.decide.metrics import Metrics

Check = Callable[[], str]
"""What is wrong, in words; empty when nothing is."""


async def serve(
    live: Mapping[str, Check], ready: Mapping[str, Check], metrics: Metrics, address: str, port: int
) -> tuple[web.AppRunner, str]:
    """Listen; the runner to clean up, and `address:port` as it turned out."""

    async def expose(_: web.Request) -> web.StreamResponse:
        return web.Response(
            body=metrics.expose(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    app = web.Application()
    app.router.add_get("/metrics", expose)
    app.router.add_get("/livez", _answering(live))
    app.router.add_get("/readyz", _answering({**live, **ready}))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, address, port).start()
    host, taken = runner.addresses[0][:2]
    return runner, f"{host}:{taken}"


def _answering(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_: web.Request) -> web.StreamResponse:
        wrong = [f"{name}: {found}" for name, check in checks.items() if (found := check())]
        return web.Response(text="\n".join(wrong) or "ok", status=503 if wrong else 200)

    return answer
