"""A queue served by a bounded number of workers, which bounds the requests in flight."""

from __future__ import annotations

import asyncio
from collections import deque
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
