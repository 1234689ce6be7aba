"""Events that wait for the engine.

A watch waits while the inbox is full; TCP back-pressure then slows the API server down. Answers to our
own requests never wait: their number is bounded by the requests in flight, and a worker that waited here
for the loop while the loop waits for the workers would be a deadlock.
"""

import asyncio
from collections import deque
from collections.abc import Sequence

from eclectus.model.events import Event, TaskSeen

CAPACITY = 20_000  # events; a list of 10,000 pods passes without a pause
# The weight of the events of a step, so that answers are processed between those of a long list.
MAX_BATCH = 2_000
# Of a term about other pods: where it selects namespaces, each pod costs a millisecond and more.
TERM_WEIGHT = 8


class Inbox:
    """Events in order of arrival."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._events: deque[Event] = deque()
        self._capacity = capacity
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    def __len__(self) -> int:
        return len(self._events)

    def put(self, event: Event) -> None:
        """Add the answer to one of our own requests, or a change of leadership. Never waits."""
        self._events.append(event)
        self._arrived.set()

    async def put_all(self, events: Sequence[Event]) -> None:
        """Add what a watch has read, then wait while the inbox is full.

        The events are added before the wait: a reader that is cancelled during the wait has already
        recorded them as known, so they would be lost otherwise.
        """
        self._events.extend(events)
        if self._events:
            self._arrived.set()
        if len(self._events) >= self._capacity:
            self._has_room.clear()
        await self._has_room.wait()

    def wake(self) -> None:
        """End a wait in `take` although there are no events."""
        self._arrived.set()

    async def take(self, timeout_seconds: float) -> list[Event]:
        """The oldest events, of MAX_BATCH together; waits for the first one, empty after the timeout."""
        if not self._events:
            self._arrived.clear()
            try:
                async with asyncio.timeout(timeout_seconds):
                    await self._arrived.wait()
            except TimeoutError:
                return []
        taken, left = list[Event](), MAX_BATCH
        while self._events and left > 0:
            event = self._events.popleft()
            taken.append(event)
            left -= _weight(event)
        if len(self._events) < self._capacity:
            self._has_room.set()
        return taken


def _weight(event: Event) -> int:
    """What an event costs the step that takes it in, in pods without terms about other pods and claims."""
    if not isinstance(event, TaskSeen):
        return 1
    task, spec = event.task, event.task.spec
    terms = len(task.anti_affinity_terms) + len(spec.affinity_terms) + len(spec.preferred_terms)
    return 1 + TERM_WEIGHT * terms + len(task.claims)
