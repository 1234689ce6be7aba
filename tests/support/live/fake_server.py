"""Fixtures: a fake API server with faults on request, which a real one cannot be made to produce."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from random import Random

import pytest
from aiohttp import web

from eclectus.kubeclient.client import connected
from eclectus.kubeclient.credentials import Credentials, Endpoint
from eclectus.live.process_metrics import Context

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class FakeServer:
    """Answers each `METHOD /path` from a queue of its own, the last answer again and again; else 404."""

    def __init__(self):
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[tuple[str, dict[str, str], object]] = []

    def on(self, request: str, *answers: Answer) -> None:
        self.answers[request] = list(answers)

    def count(self, request: str) -> int:
        return sum(each == request for each, _, _ in self.requests)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        what = f"{request.method} {request.path}"
        body = await request.json() if request.can_read_body else None
        self.requests.append((what, dict(request.query), body))
        answers = self.answers.get(what)
        if not answers:
            return web.json_response({"kind": "Status", "message": f"nothing at {what}"}, status=404)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return await answer(request)

    @asynccontextmanager
    async def running(self):
        """Serve on the loop of the caller; yields the URL."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        await runner.cleanup()

    @asynccontextmanager
    async def context(self, seconds: float = 0.3):
        """A Context for this server with a fixed random seed; requests time out after `seconds`."""
        async with self.running() as url, connected(Credentials(Endpoint(url)), seconds) as client:
            yield Context(client, rng=Random(1))


def says(body, status=200, headers=None) -> Answer:
    async def answer(_):
        return web.json_response(body, status=status, headers=headers)

    return answer


async def hangs(_) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response()


async def resets(request: web.Request) -> web.StreamResponse:
    request.transport.abort()
    return web.Response()


for_long = partial(asyncio.sleep, 30)


def streams(*lines: bytes, then_wait: Callable[[], Awaitable[object]] | None = for_long) -> Answer:
    """Sends lines, and ends after a wait, or at once."""

    async def answer(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line + b"\n")
        if then_wait is not None:
            await then_wait()
        return response

    return answer


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def answers():
    """The kinds of answers: says(body, status, headers), hangs, resets, streams(*lines)."""

    class Answers:
        says, hangs, resets, streams = (
            staticmethod(says),
            staticmethod(hangs),
            staticmethod(resets),
            staticmethod(streams),
        )

    return Answers


@pytest.fixture
def until():
    """Waits until a condition holds; fails after `seconds`."""

    async def wait(condition: Callable[[], object], seconds: float = 30.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 — a condition of the code under test sets no event
                await asyncio.sleep(0.01)

    return wait
