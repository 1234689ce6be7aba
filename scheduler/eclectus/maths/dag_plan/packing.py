"""Pack the remaining stages of a job into its share: list scheduling (Graham, 1969) by counts of tasks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from eclectus.maths.dag_plan.stages import Needs, Units, fitting


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


# -- profile -------------------------------------------------------------------------------------

# What is free of a share in each part of a schedule.


class FreeOverTime:
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


# -- right justification -------------------------------------------------------------------------

# Right justification: move each task of a schedule as late as its children and the share allow.
#
# Li, Willis, "An iterative scheduling technique for resource-constrained project scheduling", European
# Journal of Operational Research 56, 1992; Valls, Ballestin, Quintanilla, "Justification and RCPSP", ibid.
# 165, 2005. Tasks are taken by decreasing end. Of those taken before, what runs in a task's own interval ran
# there in the given schedule too. So its old place is free, and the schedule never gets longer.
#
# Departure: Carbyne packs the job with its dependencies reversed, which may take longer or shorter than the
# schedule itself. Then latest starts are negative, or nothing is ever due.


def right_justified(work: Units, starts: list[Start], length: int) -> list[Start]:
    """The same units, each as late as it may start if the job is to end at tick `length`."""
    profile = FreeOverTime(work.quota, length)
    for end, row, tasks in work.running:
        profile.take(0, end, work.needs[row], tasks)
    bounds = [length] * len(work.units)  # by which the next units of a stage must end
    first = [length] * len(work.units)  # the earliest start of a stage so far
    moved: list[Start] = []
    for chunk in sorted(starts, reverse=True):
        stage, left = chunk.stage, chunk.units
        ticks, needs = work.ticks[stage], work.needs[stage]
        # All units of the children end later, so they have their places. Of the stage itself nothing fits
        # later than the units before.
        end = min([bounds[stage], *(first[child] for child in work.children[stage])])
        while left:
            end, units = profile.latest(end, ticks, needs, left)
            profile.take(end - ticks, end, needs, units)
            moved.append(Start(end, end - ticks, stage, units))
            left -= units
        bounds[stage], first[stage] = end, end - ticks
    return moved
