"""Health checks and metrics over HTTP, on the loop whose health they report: a hung loop does not answer.

Health checks need no token and wait for nothing; every other page is for whom the access control permits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from http import HTTPStatus
from socket import socket

from aiohttp import web

from eclectus.kubeclient.serving.access import AccessControl
from eclectus.kubeclient.serving.answers import RETRY_SECONDS, bearer_token, refusal
from eclectus.kubeclient.serving.certificate import ServingCertificate
from eclectus.kubeclient.serving.connections import BoundedSite
from eclectus.kubeclient.serving.pages import BusyError, PageMaker, PageParts, QueryError
from eclectus.kubeclient.serving.reviews import ReadPage

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SHUTDOWN_SECONDS = 1.0  # a client that reads slowly does not keep the process
Check = Callable[[], str]
"""What is wrong, as text; empty if nothing is."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def application(
    live: Mapping[str, Check],
    ready: Mapping[str, Check],
    metrics: Callable[[], bytes],
    json_pages: Mapping[str, PageParts] | None = None,
    access: AccessControl | None = None,
    *,
    handlers: Mapping[str, Handler] | None = None,
) -> web.Application:
    """/livez and /healthz run the `live` checks, /readyz those and the `ready` ones.

    `metrics` returns the page /metrics, in Prometheus' text format; `json_pages` are further paths. Without
    `access` everybody may read them. `handlers` are further paths that decide themselves whom they answer.
    """
    app = web.Application()
    app.router.add_get("/healthz", _checking("healthz", live))
    app.router.add_get("/livez", _checking("livez", live))
    app.router.add_get("/readyz", _checking("readyz", {**live, **ready}))
    pages = {"/metrics": _page(lambda _: [metrics()], METRICS_TYPE)}
    pages |= {path: _page(parts, "application/json") for path, parts in (json_pages or {}).items()}
    for path, page in pages.items():
        app.router.add_get(path, page if access is None else _controlled(access, path, page))
    for path, handler in (handlers or {}).items():
        app.router.add_get(path, handler)
    return app


def report(name: str, found: Mapping[str, str]) -> str:
    """One line per check, as the API server's own health checks write them."""
    lines = [f"[-]{check} failed: {wrong}" if wrong else f"[+]{check} ok" for check, wrong in found.items()]
    verdict = "failed" if any(found.values()) else "passed"
    return "\n".join([*lines, f"{name} check {verdict}", ""])


async def serve(
    app: web.Application, listening: socket, certificate: ServingCertificate | None = None
) -> web.AppRunner:
    """Answer requests to the socket, on a bounded number of connections; plain HTTP without a certificate.

    The runner is to be cleaned up, which closes the socket.
    """
    if certificate is not None:
        app.cleanup_ctx.append(lambda _: _following(certificate))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    tls = None if certificate is None else certificate.context
    await BoundedSite(runner, listening, tls).start()
    return runner


async def _following(certificate: ServingCertificate) -> AsyncIterator[None]:
    """Read the certificate again as long as the server runs."""
    following = asyncio.create_task(certificate.follow(), name="certificate")
    yield
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


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


def _controlled(access: AccessControl, path: str, page: Handler) -> Handler:
    right = ReadPage(path)

    async def answer(request: web.Request) -> web.StreamResponse:
        decided = await access.decision(bearer_token(request), right)
        return await page(request) if decided.status == HTTPStatus.OK else refusal(decided)

    return answer
