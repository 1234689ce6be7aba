"""What is free of a share in each part of a schedule."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from eclectus.maths.dag_plan.stages import Needs, fitting


class Profile:
    """What is free of a quota, by time: `free[i]` from `edges[i]` to `edges[i + 1]`."""

    def __init__(self, quota: Sequence[int], length: int) -> None:
        self.edges, self.free = [0, length], [list(quota)]

    def take(self, start: int, end: int, needs: Needs, units: int) -> None:
        """Units run from start to end."""
        for part in range(self._edge(start), self._edge(end)):
            free = self.free[part]
            for resource, amount in needs:
                free[resource] -= units * amount

    def latest(self, end: int, ticks: int, needs: Needs, most: int) -> tuple[int, int]:
        """The latest interval of this length until `end` in which a unit fits: its end, and how many fit.

        There must be one.
        """
        edges, free = self.edges, self.free
        part, units = bisect_left(edges, end) - 1, most
        while True:
            units = fitting(free[part], needs, units)
            if units <= 0:
                end, units = edges[part], most
            elif edges[part] <= end - ticks:
                return end, units
            part -= 1

    def earliest(self, start: int, ticks: int, needs: Needs, most: int) -> tuple[int, int]:
        """The earliest interval of this length from `start` in which a unit fits: its start, and how many.

        There must be one.
        """
        edges, free = self.edges, self.free
        part, units = bisect_right(edges, start) - 1, most
        while True:
            units = fitting(free[part], needs, units)
            part += 1
            if units <= 0:
                start, units = edges[part], most
            elif edges[part] >= start + ticks:
                return start, units

    def _edge(self, tick: int) -> int:
        """The index of the edge at this tick, which is made where there is none."""
        at = bisect_left(self.edges, tick)
        if self.edges[at] != tick:
            self.edges.insert(at, tick)
            self.free.insert(at, list(self.free[at - 1]))
        return at
