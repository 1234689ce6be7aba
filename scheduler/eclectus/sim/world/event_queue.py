"""The event queue of the discrete-event simulation: a heap by time."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

ScheduledEvent = tuple[float, int, Callable[[Any], None], Any]
"""Time, serial number, action, argument. Events of equal time run in the order of scheduling."""

NEVER: ScheduledEvent = (
    inf,
    -1,
    lambda nothing: None,
    None,
)  # sentinel, so that the heap is never empty


class EventQueue:
    """Events that are scheduled and have not run."""

    def __init__(self) -> None:
        self._heap: list[ScheduledEvent] = [NEVER]
        self._serials = count()

    def schedule(self, at: float, action: Callable[[Any], None], argument: object) -> None:
        """Call `action(argument)` at time `at`, in seconds."""
        heappush(self._heap, (at, next(self._serials), action, argument))

    @property
    def next_time(self) -> float:
        """The time of the next event in seconds; inf if there is none."""
        return self._heap[0][0]

    def run_due(self, now: float) -> None:
        """Run all events due by `now`, including those they schedule for `now`."""
        heap = self._heap
        while heap[0][0] <= now:
            _, _, action, argument = heappop(heap)
            action(argument)
