"""What has happened and has not been told to the engine yet.

Watches wait when it is full, which reaches the API server as TCP back-pressure. Answers to our own
requests never wait: there are only as many as requests in flight, and a worker that waited here for
a loop that waits for the workers would wait for ever.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence

from eclectus.model.events import Event

MOST_WAITING = 20_000  # events; a list of 10,000 pods goes through without a pause
MOST_AT_ONCE = 2_000  # events a step, so that answers are looked at between the steps of a long list


class Inbox:
    """Events in order of arrival."""

    def __init__(self, most: int = MOST_WAITING) -> None:
        self._events: deque[Event] = deque()
        self._most = most
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def __len__(self) -> int:
        return len(self._events)

    def put(self, event: Event) -> None:
        """Add an answer to one of our own requests, or a turn of the election. Never waits."""
        self._events.append(event)
        self._arrived.set()

    async def offer(self, events: Sequence[Event]) -> None:
        """Add what a watch has read, then wait while the engine is behind.

        In this order, because a reader that is cancelled while it waits has told its news already:
        it takes them for known, and nobody would tell them again.
        """
        self._extend(events)
        await self._room.wait()

    def wake(self) -> None:
        """End a wait for events although there are none."""
        self._arrived.set()

    async def gather(self, most_seconds: float) -> list[Event]:
        """What has arrived, at most MOST_AT_ONCE; waits for something for so long, then returns nothing."""
        if not self._events:
            self._arrived.clear()
            try:
                async with asyncio.timeout(most_seconds):
                    await self._arrived.wait()
            except TimeoutError:
                return []
        taken = [self._events.popleft() for _ in range(min(len(self._events), MOST_AT_ONCE))]
        if len(self._events) < self._most:
            self._room.set()
        return taken

    def _extend(self, events: Iterable[Event]) -> None:
        self._events.extend(events)
        if self._events:
            self._arrived.set()
        if len(self._events) >= self._most:
            self._room.clear()
