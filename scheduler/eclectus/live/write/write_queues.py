"""How writes wait and are repeated.

Pools bound what is under way at a time, `Slots` the requests of several pools together. A write is repeated
until it is done or refused, has been tried for long enough, or this process leads no more.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Generic, Literal, TypeVar

from eclectus.kubeclient.api_errors import ApiError, ConflictError, MissingError, NotDoneError, UnsureError
from eclectus.kubeclient.timing import Backoff, elapsed
from eclectus.model.commands import Bind, Evict, MarkStraggling, Nominate, Report

T = TypeVar("T")


@dataclass(eq=False)
class Pool(Generic[T]):
    """Handles at most `limit` items of one key at a time, oldest first; other keys do not wait for them.

    Without `key_of` all items have the same key. An exception of the handler is a defect: `run` raises it.
    """

    name: str
    limit: int
    handle: Callable[[T], Awaitable[None]]
    key_of: Callable[[T], str] = lambda _: ""

    def __post_init__(self) -> None:
        self._queues: dict[str, deque[T]] = {}  # by key, of items that wait
        self._busy = Counter[str]()  # by key, of those that are being handled
        self._count = 0
        self._group: asyncio.TaskGroup | None = None  # None: it does not run
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """How many items wait or are being handled."""
        return self._count

    def put(self, item: T) -> None:
        """Add an item; it is begun at once if the limit allows."""
        key = self.key_of(item)
        self._queues.setdefault(key, deque()).append(item)
        self._count += 1
        self._begin(key)

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as self._group:
                for key in list(self._queues):
                    self._begin(key)
                await asyncio.Event().wait()
        finally:
            self._group = None

    async def wait_below(self, limit: int) -> None:
        """Wait until fewer than `limit` items wait or are being handled."""
        while self._count >= limit:
            self._changed.clear()
            await self._changed.wait()

    def _begin(self, key: str) -> None:
        """Begin the next items of this key, as many as may be under way."""
        queue = self._queues.get(key)
        while self._group is not None and queue and self._busy[key] < self.limit:
            self._busy[key] += 1
            self._group.create_task(self._work(key, queue.popleft()), name=f"{self.name} {key}")
        if queue is not None and not queue:
            del self._queues[key]

    async def _work(self, key: str, item: T) -> None:
        try:
            await self.handle(item)
        finally:
            self._count -= 1
            self._busy[key] -= 1
            if not self._busy[key]:
                del self._busy[key]
            self._changed.set()
        self._begin(key)


@dataclass(eq=False)
class Slots:
    """Lets at most `limit()` requests be under way at a time: the lowest rank first, then the eldest."""

    limit: Callable[[], int]

    def __post_init__(self) -> None:
        self._taken = 0
        self._asked = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []  # a heap of (rank, serial, turn)

    @asynccontextmanager
    async def one(self, rank: int) -> AsyncIterator[None]:
        """A slot for the length of an `async with` block; waits until one is free."""
        turn = asyncio.get_running_loop().create_future()
        self._asked += 1
        heappush(self._waiting, (rank, self._asked, turn))
        self.admit()
        try:
            await turn
            yield
        finally:
            if turn.done() and not turn.cancelled():
                self._taken -= 1
                self.admit()

    def admit(self) -> None:
        """Begin as many of those that wait as may be under way: the limit may have risen."""
        while self._waiting and self._taken < self.limit():
            turn = heappop(self._waiting)[-1]
            if not turn.done():  # otherwise its task was cancelled
                self._taken += 1
                turn.set_result(None)


UNDONE = (NotDoneError, UnsureError)  # after these a write that may be done twice is repeated
OUTDATED = (ConflictError, *UNDONE)  # one that is made anew each time, too: the watch brings the new version
LEASE_LOST = "this process no longer holds the Lease for certain"


def pod_path(pod: Bind | Evict | MarkStraggling | Nominate | Report) -> str:
    """The path of the pod that a command is about."""
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def log_fields(about: Bind | Evict | Nominate) -> dict[str, str]:
    """The fields of a log line about a command."""
    return {"pod": f"{about.namespace}/{about.name}", "node": about.node, "uid": about.uid}


Result = Literal["written", "gone", "refused", "failed"]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Persistence:
    """Repeats writes. `may_write` is asked before each attempt.

    Each attempt takes a `slot`. A write that waits to be repeated has none, but keeps its place in its pool:
    what the API server refuses for lack of capacity holds up its like, and nothing else.
    """

    rng: Random
    may_write: Callable[[], bool]
    least_pause: float = 0.1  # seconds
    slot: Callable[[], AbstractAsyncContextManager[None]] = nullcontext

    async def attempt(
        self, write: Callable[[], Awaitable[None]], again: tuple[type[ApiError], ...], seconds: float
    ) -> ApiError | None:
        """Write, and after errors of these kinds write again; returns why it was given up, or nothing.

        Raises every other error of `write`.
        """
        backoff = Backoff(self.least_pause, 5.0, self.rng)
        give_up_at: float | None = None
        found: ApiError | None = None
        while True:
            async with self.slot():
                give_up_at = give_up_at or elapsed() + seconds  # from its first turn on
                if not self.may_write() or elapsed() >= give_up_at:
                    return found or ApiError("", message=LEASE_LOST)
                try:
                    await write()
                except again as error:
                    found = error
                else:
                    return None
            await asyncio.sleep(found.retry_after or backoff.wait())

    async def why_not(
        self, write: Callable[[], Awaitable[None]], again: tuple[type[ApiError], ...], seconds: float
    ) -> str:
        """Write likewise; returns why it is not done, empty if it is."""
        try:
            error = await self.attempt(write, again, seconds)
        except ApiError as refused:
            error = refused
        return "" if error is None else error.reason


class NewestWriter(ABC, Generic[Value]):
    """Writes the newest value of each key, which replaces one that still waits; `workers.run()` must run.

    A value is given up after `patience` seconds.
    """

    def __init__(self, name: str, in_flight: int, persistence: Persistence, patience: float) -> None:
        self._persistence = persistence
        self._patience = patience
        self._newest: dict[str, Value] = {}
        self.workers: Pool[str] = Pool(name, in_flight, self._work)

    def put(self, key: str, value: Value) -> None:
        """Queue the value to be written."""
        is_queued = key in self._newest
        self._newest[key] = value
        if not is_queued:
            self.workers.put(key)

    def cancel(self, key: str) -> None:
        """Drop the value of this key, if it still waits."""
        self._newest.pop(key, None)

    @abstractmethod
    async def _write(self, value: Value) -> None:
        """Try once. Raises ApiError; MissingError where there is nothing any more to write it on."""

    @abstractmethod
    def _ended(self, value: Value, result: Result, error: ApiError | None) -> None:
        """The value is written or never will be; `error` says why if that is no normal end."""

    async def _work(self, key: str) -> None:
        """Write until the newest value is written; the key is in `_newest` as long as this goes on."""
        sent: Value | None = None

        async def write() -> None:
            nonlocal sent
            sent = self._newest.get(key)
            if sent is not None:
                await self._write(sent)

        while (value := self._newest.get(key)) is not None and value is not sent:
            result, error = await self._result(write)
            self._ended(value, result, error)
            if error is not None:
                break
        self._newest.pop(key, None)

    async def _result(self, write: Callable[[], Awaitable[None]]) -> tuple[Result, ApiError | None]:
        try:
            given_up = await self._persistence.attempt(write, OUTDATED, self._patience)
        except MissingError:
            return "gone", None
        except ApiError as error:
            return "refused", error
        return ("written" if given_up is None else "failed"), given_up
