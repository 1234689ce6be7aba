"""The network between processes and the API server: it delays, loses requests and answers, and is cut.

A request that is lost is never handled; an answer that is lost belongs to a request that was. A client finds
out by its time limit, as with a real connection.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from random import Random
from typing import Any

from msgspec.json import decode, encode

from eclectus.kubeclient.api_errors import NotDoneError, UnsureError, error_from
from eclectus.kubeclient.client import ApiClient, Parameters
from eclectus_e2e.chaos.api_server import ApiServer, Change, RefusedError, parsed, selects
from eclectus_e2e.chaos.flow_control import HANDLED_SECONDS, FlowControl
from eclectus_e2e.chaos.virtual_time import Process, VirtualLoop

BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK_SECONDS = 2.0  # before the end of a watch, or up to a second later
_NOBODYS = Context()  # of callbacks that are no process'
_LOST = (-1, b"")  # in place of an answer that has not come in time
_Request = tuple[str, str, dict[str, str], Any]  # method, path, query, body


@dataclass
class Network:
    """Times in seconds; shares are probabilities of a request. `cut` are the processes that reach nothing."""

    loop: VirtualLoop
    server: ApiServer
    rng: Random
    delay: tuple[float, float] = (0.0005, 0.005)
    slow_share: float = 0.0  # of requests that take up to `slow_seconds` more on their way
    slow_seconds: float = 3.0
    lost_requests: float = 0.0
    lost_answers: float = 0.0
    busy_share: float = 0.0  # of requests answered with 429
    admission_seconds: float = 0.0  # that the server thinks about a write, at most
    is_down: bool = False  # whether the API server is
    restarts: int = 0  # of the API server: what was on its way to the one before never arrives
    cut: set[Process] = field(default_factory=set)
    # (end of a path, what happens before the next write to such a path, once), by process
    before_write: dict[Process, tuple[str, Callable[[], None]]] = field(default_factory=dict)
    watches: list[_Watch] = field(default_factory=list)
    requests: int = 0

    def __post_init__(self) -> None:
        self.server.watchers.append(self._forward)
        self.flows = FlowControl(self.later)
        self.lease_flows = FlowControl(self.later)

    def one_way(self) -> float:
        """Seconds that a message travels."""
        seconds = self.rng.uniform(*self.delay)
        if self.rng.random() < self.slow_share:
            seconds += self.rng.uniform(0.0, self.slow_seconds)
        return seconds

    def later(self, seconds: float, callback: Any, *args: Any) -> None:
        """Call back as of no process: what is on its way is not stopped with its sender."""
        self.loop.call_later(seconds, callback, *args, context=_NOBODYS)

    def connect(self, processes: Iterable[Process]) -> None:
        """End a cut: what was sent meanwhile is lost, so the watches end."""
        self.cut.difference_update(processes)
        for process in processes:
            self.break_watches(process)

    def break_watches(self, process: Process | None = None) -> None:
        """End the watches of a process, or of all, as a restarted API server or proxy does."""
        for watch in [each for each in self.watches if process is None or each.process is process]:
            watch.end()

    def go_down(self, seconds: float) -> None:
        """Stop the API server for a while: its connections end."""
        self.is_down = True
        self.restarts += 1
        self.break_watches()
        self.later(seconds, self._come_up, self.restarts)

    def _come_up(self, restarts: int) -> None:
        if restarts == self.restarts:  # otherwise it was stopped again
            self.is_down = False

    def _forward(self, change: Change) -> None:
        for watch in self.watches:
            if watch.resource == change.resource:
                watch.send(change)


@dataclass(eq=False)
class _Watch:
    """One watch: events travel in order. `version` is that of the last one that was sent."""

    network: Network
    resource: str
    process: Process
    version: int
    ends_at: float
    selector: str = ""
    arrived: deque[bytes] = field(default_factory=deque)
    news: asyncio.Future[bool] | None = None  # for which the reader waits: whether there are any
    is_over: bool = False
    has_lost: bool = False  # a line, so all later ones too: a connection delivers none out of order
    arrives_at: float = 0.0

    def send(self, change: Change) -> None:
        """One change as a line."""
        self.version = change.revision
        if selects(self.selector, change.new or change.old or {}):
            self._send(change.line)

    def bookmark(self) -> None:
        """Say which revision the watch has passed, if it is later than the last one that was sent."""
        if self not in self.network.watches:
            return
        if (reached := self.network.server.reached.get(self.resource, 0)) > self.version:
            self.version = reached
            self._line({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(reached)}}})
        self.bookmark_later()

    def bookmark_later(self) -> None:
        """Send a bookmark each minute and shortly before the end, as kube-apiserver does."""
        network = self.network
        left = self.ends_at - LAST_BOOKMARK_SECONDS - network.loop.time()
        if left >= 0.0:
            network.later(min(BOOKMARK_SECONDS, left) + network.rng.random(), self.bookmark)

    def error(self, code: int, message: str) -> None:
        """A line that says why the watch cannot go on."""
        self._line({"type": "ERROR", "object": {"kind": "Status", "code": code, "message": message}})

    def wake(self, has_news: bool) -> None:
        """Let the reader go on, if it waits."""
        if self.news is not None and not self.news.done():
            self.news.set_result(has_news)

    async def wait(self, seconds: float) -> bool:
        """Whether something arrives or the watch ends before so many seconds are over."""
        loop = self.network.loop
        self.news = loop.create_future()
        timer = loop.call_later(seconds, self.wake, False)
        try:
            return await self.news
        finally:
            timer.cancel()

    def end(self) -> None:
        """Close it: what is on its way arrives before."""
        if self in self.network.watches:
            self.network.watches.remove(self)

        def close() -> None:
            self.is_over = True
            self.wake(True)

        self._at_its_time(close)

    def _line(self, event: dict[str, Any]) -> None:
        self._send(encode(event) + b"\n")

    def _send(self, line: bytes) -> None:
        def arrive() -> None:
            self.has_lost = self.has_lost or self.process in self.network.cut
            if not self.has_lost:
                self.arrived.append(line)
                self.wake(True)

        self._at_its_time(arrive)

    def _at_its_time(self, callback: Any) -> None:
        now = self.network.loop.time()
        self.arrives_at = max(self.arrives_at, now + self.network.one_way())
        self.network.later(self.arrives_at - now, callback)


class _Body:
    """What `ApiClient.stream` yields: reads until the watch is over. Raises UnsureError after silence."""

    def __init__(self, watch: _Watch, silence: float) -> None:
        self._watch = watch
        self._silence = silence

    async def iter_any(self) -> AsyncIterator[bytes]:
        """All that has arrived, each time something has."""
        watch = self._watch
        while True:
            if watch.arrived:
                read = b"".join(watch.arrived)
                watch.arrived.clear()
                yield read
                continue
            if watch.is_over:
                return
            if not await watch.wait(self._silence):
                raise UnsureError("WATCH", message="no answer: silence")


class SimulatedClient(ApiClient):
    """An ApiClient of one process over the simulated network."""

    def __init__(self, network: Network, process: Process, seconds: float) -> None:
        self._network = network
        self._process = process
        self._limit = seconds

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Parameters | None = None,
        seconds: float | None = None,
        **_: Any,
    ) -> bytes:
        """The body of one request's answer. Raises ApiError."""
        what, network = f"{method} {path}", self._network
        answered: asyncio.Future[tuple[int, bytes]] = network.loop.create_future()
        copied = None if body is None else decode(encode(body))
        network.requests += 1
        end, happens = network.before_write.get(self._process, ("", None))
        if happens is not None and method != "GET" and path.endswith(end) and "/leases" not in path:
            del network.before_write[self._process]
            happens()
        # As of this process: one that is paused here sends when it goes on.
        asked = {name: str(value) for name, value in (query or {}).items()}  # each is a text here
        network.loop.call_soon(self._travel, method, path, asked, copied, answered)
        timer = network.loop.call_later(seconds or self._limit, self._reply, answered, *_LOST)
        try:
            status, answer = await answered
        finally:
            timer.cancel()
        if (status, answer) == _LOST:
            raise UnsureError(what, message="no answer: TimeoutError")
        if status == 0:
            raise NotDoneError(what, message="the API server cannot be reached", is_logged=True)
        if status >= 400:
            raise error_from(what, status, answer, {"Retry-After": "1"} if status == 429 else {}, "")
        return answer

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str], *, silence: float) -> AsyncIterator[Any]:
        """A watch's body as it arrives."""
        network = self._network
        await asyncio.sleep(network.one_way())
        if self._process in network.cut or network.is_down:
            await asyncio.sleep(5.0)
            raise NotDoneError(f"WATCH {path}", message="no connection", is_logged=True)
        what, version = parsed(path), int(query["resourceVersion"])
        selector = query.get("labelSelector", "")
        ends_at = network.loop.time() + float(query.get("timeoutSeconds", 300))
        watch = _Watch(network, what.resource, self._process, version, ends_at, selector)
        try:
            missed = list(network.server.since(what.resource, version))
        except RefusedError as error:
            watch.error(int(error.code), error.message)
            watch.end()
        else:
            for change in missed:
                watch.send(change)
            network.watches.append(watch)
            watch.bookmark_later()
            network.later(ends_at - network.loop.time(), watch.end)
        try:
            yield _Body(watch, silence)
        finally:
            watch.end()

    def _travel(
        self, method: str, path: str, query: dict[str, str], body: Any, answered: asyncio.Future[Any]
    ) -> None:
        """Let the request reach the server, and its answer the client, or not."""
        network = self._network
        is_lost = (
            self._process in network.cut or network.is_down or network.rng.random() < network.lost_requests
        )
        if is_lost:
            if network.rng.random() < 0.5:  # a refused connection; otherwise silence
                network.later(network.one_way(), self._reply, answered, 0, b"")
            return
        at_server = network.one_way()
        if method != "GET":
            at_server += network.rng.uniform(0.0, network.admission_seconds)
        request = (method, path, query, body)
        network.later(at_server, self._arrive, network.restarts, request, answered)

    def _arrive(self, restarts: int, request: _Request, answered: asyncio.Future[Any]) -> None:
        """Let the request have a slot of its flow, which is that of all replicas."""
        handle = partial(self._handle, restarts, request, answered)
        flow = self._process.name.partition("-")[0]
        level = self._network.lease_flows if "/leases" in request[1] else self._network.flows
        level.admit(flow, HANDLED_SECONDS, handle, partial(handle, is_refused=True))

    def _handle(
        self,
        restarts: int,
        request: _Request,
        answered: asyncio.Future[Any],
        *,
        is_refused: bool = False,
    ) -> None:
        network = self._network
        if restarts != network.restarts:
            return
        try:
            if is_refused or network.rng.random() < network.busy_share:
                raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, "too many requests, please try again later")
            status, found = 200, network.server.answer(*request, self._process.name)
        except RefusedError as error:
            status, found = (
                int(error.code),
                {"kind": "Status", "code": int(error.code), "message": error.message},
            )
        if network.rng.random() >= network.lost_answers and self._process not in network.cut:
            network.later(network.one_way(), self._reply, answered, status, encode(found))

    def _reply(self, answered: asyncio.Future[Any], status: int, body: bytes) -> None:
        if not answered.done():
            answered.set_result((status, body))
