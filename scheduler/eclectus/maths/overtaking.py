"""By how much a queue's first task has been delayed by tasks that came later and went first.

Behind the first task stand tasks that came later than it. Whoever overtakes one of them overtakes the first
as well, as long as that waits; and when it has left, only those count that came later than the next one. So
one heap by time of arrival is enough for all tasks of the queue.
"""

from __future__ import annotations

from heapq import heappop, heappush


class Delays:
    """The delays of a first come, first served queue by tasks of other queues."""

    def __init__(self) -> None:
        self._overtakers: list[
            tuple[float, float]
        ] = []  # when each arrived and by how much it delays: a heap
        self._sum = 0.0  # seconds

    def add(self, arrived: float, seconds: float) -> None:
        """A task that arrived at this time has gone first, and delays the queue by so many seconds."""
        heappush(self._overtakers, (arrived, seconds))
        self._sum += seconds

    def of_first(self, arrived: float) -> float:
        """The delay of the first task, which arrived at this time, seconds; first tasks come in order."""
        while self._overtakers and self._overtakers[0][0] <= arrived:
            self._sum -= heappop(self._overtakers)[1]
        if not self._overtakers:
            self._sum = 0.0  # exactly
        return self._sum
