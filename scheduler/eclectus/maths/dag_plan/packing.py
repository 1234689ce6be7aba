"""Pack the remaining stages of a job into its share: list scheduling (Graham, 1969) by counts of tasks."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from eclectus.maths.dag_plan.stages import fitting
from eclectus.maths.dag_plan.units import Units


class Start(NamedTuple):
    """Units of one stage that start together; ticks from now."""

    end: int
    start: int
    stage: int
    units: int


class Packing:
    """The state of a schedule that is made forwards in time."""

    def __init__(self, work: Units, order: Sequence[int]) -> None:
        self.starts: list[Start] = []
        self.ends = list(work.running)  # (tick, row, units) of what has started, as a heap
        heapify(self.ends)
        self._work, self._order = work, order
        self._free, self._left = list(work.quota), list(work.units)
        self._unfinished, self._blockers = list(work.units), list(work.blockers)
        for _, row, tasks in work.running:
            self._unfinished[row - len(work.units)] += tasks
            for resource, amount in work.needs[row]:
                self._free[resource] -= tasks * amount
        self.ready = sorted(
            (order[at], at) for at, units in enumerate(work.units) if units and not work.blockers[at]
        )

    def start(self, now: int) -> None:
        """Start what is ready and fits, in order."""
        work, free, left = self._work, self._free, self._left
        for _, at in self.ready:
            units = fitting(free, work.needs[at], left[at])
            if units > 0:
                end = now + work.ticks[at]
                self.starts.append(Start(end, now, at, units))
                heappush(self.ends, (end, at, units))
                left[at] -= units
                for resource, amount in work.needs[at]:
                    free[resource] -= units * amount
        self.ready = [entry for entry in self.ready if left[entry[1]]]

    def finish(self) -> int:
        """End what ends first; returns its tick."""
        work, ends, free = self._work, self.ends, self._free
        now = ends[0][0]
        while ends and ends[0][0] == now:
            _, row, units = heappop(ends)
            for resource, amount in work.needs[row]:
                free[resource] += units * amount
            stage = row % len(work.units)
            self._unfinished[stage] -= units
            if not self._unfinished[stage]:
                self._release(stage)
        return now

    def _release(self, stage: int) -> None:
        for child in self._work.children[stage]:
            self._blockers[child] -= 1
            if not self._blockers[child] and self._left[child]:
                insort(self.ready, (self._order[child], child))


def packed(work: Units, order: Sequence[int], most_steps: float) -> list[Start] | None:
    """Start everything as early as its parents and the quota allow, in this order of precedence of stages.

    `order`: the position of each stage, smallest first. What runs holds its part of the quota until it ends.
    None if this, and moving the starts to later times, would take more than about `most_steps` steps.
    """
    packing, steps = Packing(work, order), 0
    packing.start(0)
    while packing.ends:
        steps += len(packing.ready)
        starts = len(packing.starts)
        if steps + starts * (len(work.units) + starts // 8) > most_steps:
            return None
        packing.start(packing.finish())
    return packing.starts
