"""The arrival rate of a system of several schedulers: each publishes a counter, the rates are added.

rosella.md 5.7: a scheduler counts the tasks that have come to it since it began, and tells the others
from time to time. Its rate is what the counter has grown by over the time that took. A counter that
falls has begun anew; one not heard of for `lost_seconds` is of a scheduler that is no more, and what
would have come to it comes to the others.
"""

from __future__ import annotations

from collections import deque

READINGS = 60  # newest readings that make a rate: a minute of them at one a second


class Tallies:
    """Counters by scheduler, as last heard."""

    def __init__(self, lost_seconds: float) -> None:
        self._lost_seconds = lost_seconds
        self._heard: dict[str, deque[tuple[float, int]]] = {}  # when, count; oldest first

    def hear(self, scheduler: str, count: int, now: float) -> None:
        """A scheduler says how many tasks have come to it so far; `now` never falls."""
        readings = self._heard.setdefault(scheduler, deque(maxlen=READINGS))
        if readings and count < readings[-1][1]:
            readings.clear()
        if not readings or now > readings[-1][0]:
            readings.append((now, count))

    def rate(self, now: float) -> float:
        """Tasks a second of all schedulers still heard of."""
        lost = [name for name, readings in self._heard.items() if now - readings[-1][0] > self._lost_seconds]
        for scheduler in lost:
            del self._heard[scheduler]
        return sum(_growth(readings) for readings in self._heard.values())


def _growth(readings: deque[tuple[float, int]]) -> float:
    (first, before), (last, after) = readings[0], readings[-1]
    return (after - before) / (last - first) if last > first else 0.0
