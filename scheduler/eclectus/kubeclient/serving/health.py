"""Health checks and metrics over HTTP.

Health checks need no token and wait for nothing: they are answered by the loop that serves. Every other page
is for users whom the access control permits; it is made by the loop whose state it shows, which may be
another one, on another thread, and busy.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from math import ceil
from socket import socket
from typing import Any, Protocol, cast

from aiohttp import web

from eclectus.kubeclient.serving.access import AccessControl, PageRight
from eclectus.kubeclient.serving.callers import Token
from eclectus.kubeclient.serving.pages import RETRY_SECONDS, BusyError, PageMaker, PageParts, QueryError
from eclectus.kubeclient.side_loop import on

CONNECTIONS_MOST = 128  # a kubelet, some Prometheus servers and users need a handful
PAUSE_SECONDS = 0.1  # after one that could not be accepted, as when the process has no file descriptor left


@dataclass(frozen=True, slots=True)
class _Connection:
    """An accepted socket, and the task that makes a connection of it, with TLS a handshake."""

    accepted: socket
    source: str  # the address of the client
    opening: asyncio.Task[asyncio.Transport | None]

    @property
    def is_open(self) -> bool:
        return self.accepted.fileno() >= 0

    def drop(self) -> None:
        """Close it without waiting for the client."""
        if not self.opening.done():
            self.opening.cancel()
        elif not self.opening.cancelled() and (transport := self.opening.result()) is not None:
            transport.abort()


class Tls(Protocol):
    """TLS of a server. New connections get the context of their moment."""

    @property
    def context(self) -> ssl.SSLContext:
        """That of now."""

    async def follow(self) -> None:
        """Keep the context up to date, until cancelled."""


class BoundedSite(web.BaseSite):
    """Serves what a runner that is set up has, on a listening socket; without `tls` in plain HTTP."""

    def __init__(self, runner: web.AppRunner, listening: socket, tls: Tls | None) -> None:
        super().__init__(runner, ssl_context=None if tls is None else tls.context)
        self._tls = tls
        self._protocol = cast("web.Server", runner.server)  # the base class has checked it
        self._listening = listening
        self._connections: list[_Connection] = []  # the oldest first

    @property
    def name(self) -> str:
        """Its address, for people."""
        return str(self._listening.getsockname())

    async def start(self) -> None:
        """Accept connections until `stop`."""
        await super().start()
        self._listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept_forever(), name="connections")

    async def stop(self) -> None:
        """Close the socket, and connections that are not ready; the runner closes the others."""
        await super().stop()
        unready = [each.opening for each in self._connections if not each.opening.done()]
        for task in (self._accepting, *unready):
            task.cancel()
        await asyncio.gather(self._accepting, *unready, return_exceptions=True)
        self._listening.close()

    async def _accept_forever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listening)
            except OSError:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            self._make_room()
            opening = asyncio.create_task(self._opened(accepted))
            self._connections.append(_Connection(accepted, address[0], opening))
            await asyncio.sleep(0)  # sock_accept does not yield while connections wait to be accepted

    def _make_room(self) -> None:
        """Close the oldest connection of the address that has most, where there are too many."""
        self._connections = [each for each in self._connections if each.is_open]
        if len(self._connections) >= CONNECTIONS_MOST:
            held = Counter(each.source for each in self._connections)
            oldest = max(self._connections, key=lambda each: held[each.source])  # the first of equal ones
            self._connections.remove(oldest)
            oldest.drop()

    async def _opened(self, accepted: socket) -> asyncio.Transport | None:
        """The transport of a new connection; None if the client has gone or speaks no TLS."""
        loop = asyncio.get_running_loop()
        context = None if self._tls is None else self._tls.context
        with suppress(OSError):
            transport, _ = await loop.connect_accepted_socket(self._protocol, accepted, ssl=context)
            return transport
        return None


_REASONS = {  # of metav1.Status
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.UNAUTHORIZED: "Unauthorized",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "RequestEntityTooLarge",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalError",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable",
}


def bearer_token(request: web.Request) -> Token:
    """The token of a request; empty if it has none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return Token(token.strip() if scheme.lower() == "bearer" else "")


def failure(status: HTTPStatus, message: str, again: float = RETRY_SECONDS) -> web.Response:
    """A Status; with 429 it says after how many seconds to ask again."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": _REASONS[status],
        "code": int(status),
    }
    headers = retry_after(again) if status == HTTPStatus.TOO_MANY_REQUESTS else {}
    return web.json_response(body, status=status, headers=headers)


def retry_after(seconds: float) -> dict[str, str]:
    """The header that says when to ask again, in whole seconds as HTTP has them."""
    return {"Retry-After": str(max(1, ceil(seconds)))}


METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SHUTDOWN_SECONDS = 1.0  # a client that reads slowly does not keep the process
Check = Callable[[], str]
"""What is wrong, as text; empty if nothing is."""
Handler = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]
Put = Callable[[str], str]
"""Takes the text of a request, and returns the answer. Raises QueryError. The serving loop calls it."""
PUT_BYTES = 64  # of a text; what is longer is cut, and so refused


def application(
    live: Mapping[str, Check],
    ready: Mapping[str, Check],
    metrics: Callable[[], bytes],
    json_pages: Mapping[str, PageParts] | None = None,
    access: AccessControl | None = None,
    *,
    handlers: Mapping[str, Handler] | None = None,
    puts: Mapping[str, Put] | None = None,
    posts: Mapping[str, Handler] | None = None,
    made_by: asyncio.AbstractEventLoop | None = None,
) -> web.Application:
    """/livez and /healthz run the `live` checks, /readyz those and the `ready` ones.

    `metrics` returns the page /metrics, in Prometheus' text format; `json_pages` are further paths. Without
    `access` everybody may read them. `handlers` are further paths that decide themselves whom they answer.
    `puts` are paths to which a short text may be put; without `access` nobody may. `posts` are handlers of
    POST requests, which decide likewise, on the loop that serves. `made_by` is the loop that makes all
    but these and the health checks; by default the one that serves.
    """
    app = web.Application()
    app.router.add_get("/healthz", _checking("healthz", live))
    app.router.add_get("/livez", _checking("livez", live))
    app.router.add_get("/readyz", _checking("readyz", {**live, **ready}))
    pages = {"/metrics": _page(lambda _: [metrics()], METRICS_TYPE)}
    pages |= {path: _page(parts, "application/json") for path, parts in (json_pages or {}).items()}
    if access is not None:
        pages = {path: _controlled(access, path, page) for path, page in pages.items()}
    for path, handler in {**pages, **(handlers or {})}.items():
        app.router.add_get(path, handler if made_by is None else _made_by(made_by, handler))
    for path, put in (puts or {}).items():
        app.router.add_put(path, _putting(access, path, put, made_by))
    for path, handler in (posts or {}).items():
        app.router.add_post(path, handler)
    return app


def report(name: str, found: Mapping[str, str]) -> str:
    """One line per check, as the API server's own health checks write them."""
    lines = [f"[-]{check} failed: {wrong}" if wrong else f"[+]{check} ok" for check, wrong in found.items()]
    verdict = "failed" if any(found.values()) else "passed"
    return "\n".join([*lines, f"{name} check {verdict}", ""])


@asynccontextmanager
async def serving(
    app: web.Application, listening: socket, certificate: Tls | None = None
) -> AsyncIterator[None]:
    """Answer requests to the socket for the length of the block, which closes it.

    The number of connections is bounded. Without a certificate it is plain HTTP.
    """
    if certificate is not None:
        app.cleanup_ctx.append(lambda _: _following(certificate))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    await BoundedSite(runner, listening, certificate).start()
    try:
        yield
    finally:
        await runner.cleanup()


async def _following(certificate: Tls) -> AsyncIterator[None]:
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
            return web.Response(text=f"{error}\n", status=429, headers=retry_after(error.seconds))
        return web.Response(body=body, headers={"Content-Type": content_type})

    return answer


def _made_by(loop: asyncio.AbstractEventLoop, handler: Handler) -> Handler:
    """The handler on another loop; it reads what the request says, and no body."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await on(loop, handler(request))

    return answer


def _controlled(access: AccessControl, path: str, page: Handler) -> Handler:
    right = PageRight(path)

    async def answer(request: web.Request) -> web.StreamResponse:
        decided = await access.decision(bearer_token(request), right)
        if decided.status != HTTPStatus.OK:
            return failure(decided.status, decided.message)
        return await page(request)

    return answer


def _putting(
    access: AccessControl | None, path: str, put: Put, made_by: asyncio.AbstractEventLoop | None
) -> Handler:
    right = PageRight(path, "put")

    async def answer(request: web.Request) -> web.StreamResponse:
        if access is None:
            return failure(HTTPStatus.FORBIDDEN, "nobody may put anything while authentication is `none`")
        asked = access.decision(bearer_token(request), right)
        decided = await (asked if made_by is None else on(made_by, asked))
        if decided.status != HTTPStatus.OK:
            return failure(decided.status, decided.message)
        text = (await request.content.read(PUT_BYTES)).decode(errors="replace").strip()
        try:
            return web.Response(text=f"{put(text)}\n")
        except QueryError as error:
            return failure(HTTPStatus.BAD_REQUEST, str(error))

    return answer
