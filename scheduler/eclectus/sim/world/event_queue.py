"""What will happen and when: a heap that a world lives through, moment by moment."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any

Planned = tuple[float, int, Callable[[Any], None], Any]
"""When, a serial number, and what happens to what: at one moment, what was planned first happens first."""

NEVER: Planned = (inf, -1, lambda nothing: None, None)  # always the last one: so there is always a next


class Agenda:
    """What has been planned and has not happened."""

    def __init__(self) -> None:
        self._heap: list[Planned] = [NEVER]
        self._serials = count()

    def plan(self, at: float, action: Callable[[Any], None], what: object) -> None:
        """At that time, seconds, this shall happen to that."""
        heappush(self._heap, (at, next(self._serials), action, what))

    @property
    def next_at(self) -> float:
        """When something happens next; inf if nothing ever will."""
        return self._heap[0][0]

    def happen(self, now: float) -> None:
        """All that is due by `now` happens, and what that plans for now."""
        heap = self._heap
        while heap[0][0] <= now:
            _, _, action, what = heappop(heap)
            action(what)
