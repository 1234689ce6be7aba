"""The local server of the page: who may ask it, and what it answers.

It acts with the credentials of who has started it, so nobody else may use it:

- it listens on 127.0.0.1 alone;
- a request whose header Host names another machine is refused, so that no page of the Web can reach it under
  a name of its own that resolves to 127.0.0.1;
- what is of the cluster is answered to who sends the secret of the printed URL in a header. It is in the
  URL's fragment, which no browser sends, and not in a cookie, which all servers of 127.0.0.1 would be sent;
- only questions are passed on, all of them reads;
- a page may load nothing from elsewhere, and no script but its own.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, closing
from http import HTTPStatus
from pathlib import Path
from typing import Any

import click
import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware
from msgspec import Struct

from eclectus.cli.cluster_commands import REQUEST_SECONDS
from eclectus.cli.explain.transport import LOOPBACK, Asked, Target
from eclectus.cli.ui.problems import Problem, in_words
from eclectus.cli.ui.readings import AskedError, Object, Readings
from eclectus.kubeclient.addresses import bound_address, listen
from eclectus.kubeclient.api_errors import ApiError
from eclectus.kubeclient.client import connected
from eclectus.kubeclient.credentials import Credentials

STATIC = Path(__file__).parent / "static"
FILES = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
}
OF_THE_CLUSTER = ("queue", "nodes", "pools", "jobs")  # panels
API = "/api/"  # paths below it are answered to who has the secret
HOST = re.compile(r"(localhost|127\.0\.0\.1)(:[0-9]{1,5})?")  # with any port: `ssh -L` may use another
BODY_BYTES = 65_536  # of a question with changes
TOKEN_BYTES = 32
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WhatIf(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The body of a question what would be different."""

    namespace: str
    name: str
    changes: tuple[str, ...] = ()
    as_policy: str = ""


async def serve(
    access: Credentials | None, namespace: str, port: int, comparison: Object | None = None
) -> None:
    """Serve until cancelled; the URL is printed. Raises ListenError.

    Without `access` only the comparison is shown, which needs no cluster.
    """
    token, readings = secrets.token_urlsafe(TOKEN_BYTES), None
    about = {"namespace": namespace, "server": access.endpoint.url if access else ""}
    async with AsyncExitStack() as stack:
        if access is not None:
            client = await stack.enter_async_context(connected(access, REQUEST_SECONDS))
            readings = Readings(client)
        runner = web.AppRunner(application(readings, token, about, comparison), access_log=None)
        with closing(listen(LOOPBACK, port, "--")) as listening:
            await runner.setup()
            try:
                await web.SockSite(runner, listening).start()
                click.echo(f"http://{bound_address(listening)}/#token={token}")
                click.echo("open this URL, and tell it to nobody; Ctrl-C ends", err=True)
                await asyncio.Event().wait()
            finally:
                await runner.cleanup()


def application(
    readings: Readings | None, token: str, about: Object, comparison: Object | None = None
) -> web.Application:
    """The page, and what it asks for. `about`: what it says first."""
    app = web.Application(middlewares=[_guard(token)], client_max_size=BODY_BYTES)
    app.on_response_prepare.append(_with_headers)
    for path, (name, kind) in FILES.items():
        app.router.add_get(path, _file(name, kind), allow_head=False)
    panels = [*(["comparison"] if comparison else []), *(OF_THE_CLUSTER if readings else [])]

    async def start(_: web.Request) -> Object:
        return {**about, "panels": panels}

    async def compared(_: web.Request) -> Any:
        return comparison

    app.router.add_get(f"{API}start", _answered(start), allow_head=False)
    if comparison:
        app.router.add_get(f"{API}comparison", _answered(compared), allow_head=False)
    if readings:
        _add_questions(app, readings)
    return app


def _add_questions(app: web.Application, readings: Readings) -> None:
    """What is asked of the cluster."""

    async def queue(request: web.Request) -> Any:
        return await readings.queue(_asked(request, "namespace"), _asked(request, "continue"))

    async def nodes(request: web.Request) -> Any:
        return await readings.nodes(_asked(request, "continue"))

    async def pools(request: web.Request) -> Any:
        return await readings.pools(_asked(request, "continue"))

    async def jobs(request: web.Request) -> Any:
        return await readings.jobs(_asked(request, "namespace"), _asked(request, "continue"))

    async def job(request: web.Request) -> Any:
        return await readings.job(_asked(request, "namespace"), _asked(request, "name"))

    async def pod(request: web.Request) -> Any:
        named = Target("pod", _asked(request, "name"), _asked(request, "namespace"))
        return await readings.explanation(named)

    async def node(request: web.Request) -> Any:
        return await readings.explanation(Target("node", _asked(request, "name")))

    for question in (queue, nodes, pools, jobs, job, pod, node):
        path = f"{API}{question.__name__}"
        app.router.add_get(path, _answered(question), allow_head=False)
    app.router.add_post(f"{API}what-if", _answered(lambda request: _what_if(readings, request)))


async def _what_if(readings: Readings, request: web.Request) -> Any:
    if request.content_type != "application/json":
        raise AskedError("a question with changes is JSON")
    try:
        asked = msgspec.json.decode(await request.read(), type=WhatIf)
    except msgspec.MsgspecError as error:
        raise AskedError(str(error)) from None
    changes = tuple(filter(None, (each.strip() for each in asked.changes)))
    if not changes and not asked.as_policy:
        raise AskedError("name a change, or a policy")
    return await readings.what_if(asked.namespace, asked.name, Asked(changes, asked.as_policy))


def _asked(request: web.Request, name: str) -> str:
    return request.query.get(name, "")


def _answered(question: Callable[[web.Request], Awaitable[Any]]) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(await question(request))

    return answer


def _file(name: str, kind: str) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=(STATIC / name).read_bytes(), content_type=kind, charset="utf-8")

    return answer


async def _with_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def _guard(token: str) -> Middleware:
    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_local(request.headers.get("Host", "")):
            return _failure(Problem(HTTPStatus.MISDIRECTED_REQUEST, "This server is only for this machine."))
        if request.path.startswith(API) and not _has(request, token):
            advice = "Open the URL that `eclectus ui` has printed: each start has another secret."
            return _failure(Problem(HTTPStatus.UNAUTHORIZED, advice))
        try:
            return await handler(request)
        except ApiError as error:
            return _failure(in_words(error))
        except AskedError as error:
            return _failure(Problem(HTTPStatus.BAD_REQUEST, str(error)))
        except web.HTTPException as error:  # of the router, or of a body that is too long
            return _failure(Problem(error.status, error.reason))

    return guard


def is_local(host: str) -> bool:
    """Whether a header Host names this machine by a name that nobody else can give to it."""
    return HOST.fullmatch(host) is not None


def _has(request: web.Request, token: str) -> bool:
    given = request.headers.get("Authorization", "")
    return hmac.compare_digest(given.encode(errors="surrogateescape"), f"Bearer {token}".encode())


def _failure(problem: Problem) -> web.Response:
    again = {} if problem.again is None else {"again": problem.again}
    return web.json_response({"message": problem.message, **again}, status=problem.status)
