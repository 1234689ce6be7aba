"""A few workers that serve one queue: many requests in flight, but never more than so many."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Crew(Generic[T]):
    """`workers` tasks, each serving one item at a time, oldest first."""

    def __init__(self, name: str, workers: int, serve: Callable[[T], Awaitable[None]]) -> None:
        self._name, self._workers, self._serve = name, workers, serve
        self._queue: deque[T] = deque()
        self._idle: deque[asyncio.Future[None]] = deque()
        self._changed = asyncio.Event()
        self._busy = 0

    def __len__(self) -> int:
        """Items waiting or being served."""
        return len(self._queue) + self._busy

    def put(self, item: T) -> None:
        """Add an item; a free worker takes it at once."""
        self._queue.append(item)
        while self._idle:
            worker = self._idle.popleft()
            if not worker.done():
                worker.set_result(None)
                return

    async def run(self) -> None:
        """Serve until cancelled. An exception of `serve` ends the crew: it is a defect, not an answer."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self._name}-{number}")

    async def fewer_than(self, most: int) -> None:
        """Return when fewer than `most` items wait or are served."""
        while len(self) >= most:
            self._changed.clear()
            await self._changed.wait()

    async def _work(self) -> None:
        while True:
            while not self._queue:
                free = asyncio.get_running_loop().create_future()
                self._idle.append(free)
                await free
            item = self._queue.popleft()
            self._busy += 1
            try:
                await self._serve(item)
            finally:
                self._busy -= 1
                self._changed.set()
