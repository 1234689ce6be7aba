"""Queues served by a bounded number of workers, which bounds what is under way at a time."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class WorkerPool(Generic[T]):
    """`workers` tasks, each of which handles one item at a time, oldest first.

    `limit_to` lets fewer of them work.
    """

    def __init__(self, name: str, workers: int, handle: Callable[[T], Awaitable[None]]) -> None:
        self._name, self._workers, self._handle = name, workers, handle
        self._limit = workers
        self._queue: deque[T] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._changed = asyncio.Event()
        self._busy = 0

    def __len__(self) -> int:
        """Items that wait or are being handled."""
        return len(self._queue) + self._busy

    def put(self, item: T) -> None:
        """Add an item; an idle worker takes it at once if the limit allows."""
        self._queue.append(item)
        if self._busy < self._limit:
            self._wake_one()

    def limit_to(self, limit: int) -> None:
        """Handle at most this many items at a time from now on, at least 1; what has begun is finished."""
        risen, self._limit = limit > self._limit, limit
        if risen:
            for _ in range(min(len(self._queue), limit - self._busy)):
                self._wake_one()

    async def run(self) -> None:
        """Work until cancelled. An exception of `handle` is a defect: it ends the pool and is raised."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self._name}-{number}")

    async def wait_below(self, limit: int) -> None:
        """Wait until fewer than `limit` items wait or are being handled."""
        while len(self) >= limit:
            self._changed.clear()
            await self._changed.wait()

    def _wake_one(self) -> None:
        while self._idle:
            worker = self._idle.popleft()
            if not worker.done():
                worker.set_result(None)
                return

    async def _work(self) -> None:
        while True:
            while not self._queue or self._busy >= self._limit:
                free = asyncio.get_running_loop().create_future()
                self._idle.append(free)
                await free
            item = self._queue.popleft()
            self._busy += 1
            try:
                await self._handle(item)
            finally:
                self._busy -= 1
                self._changed.set()


class FairPool(Generic[T]):
    """Handles at most `each` items of one key at a time, oldest first; others do not wait for them.

    For items that take long and cost little while they do.
    """

    def __init__(
        self, name: str, each: int, key_of: Callable[[T], str], handle: Callable[[T], Awaitable[None]]
    ) -> None:
        self._name, self._each, self._key_of, self._handle = name, each, key_of, handle
        self._queues: dict[str, deque[T]] = {}  # by key, of items that wait
        self._busy = Counter[str]()  # by key, of those that are being handled
        self._group: asyncio.TaskGroup | None = None  # None: it does not run
        self._changed = asyncio.Event()
        self._count = 0

    def __len__(self) -> int:
        """Items that wait or are being handled."""
        return self._count

    def put(self, item: T) -> None:
        """Add an item; it is begun at once where few enough of its key are under way."""
        key = self._key_of(item)
        self._queues.setdefault(key, deque()).append(item)
        self._count += 1
        self._begin(key)

    async def run(self) -> None:
        """Work until cancelled. An exception of `handle` is a defect: it ends the pool and is raised."""
        try:
            async with asyncio.TaskGroup() as self._group:
                for key in list(self._queues):
                    self._begin(key)
                await asyncio.Event().wait()
        finally:
            self._group = None

    async def wait_below(self, limit: int) -> None:
        """Wait until fewer than `limit` items wait or are being handled."""
        while len(self) >= limit:
            self._changed.clear()
            await self._changed.wait()

    def _begin(self, key: str) -> None:
        """Begin the next items of this key, as many as may be under way."""
        queue = self._queues.get(key)
        while self._group is not None and queue and self._busy[key] < self._each:
            self._busy[key] += 1
            self._group.create_task(self._work(key, queue.popleft()), name=f"{self._name} of {key}")
        if queue is not None and not queue:
            del self._queues[key]

    async def _work(self, key: str, item: T) -> None:
        try:
            await self._handle(item)
        finally:
            self._count -= 1
            self._busy[key] -= 1
            if not self._busy[key]:
                del self._busy[key]
            self._changed.set()
        self._begin(key)
