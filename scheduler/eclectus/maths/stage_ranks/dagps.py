"""Troublesome stages first (DAGPS): place what is hard to place, then all else around it.

Grandl, Kandula, Rao, Akella, Kulkarni, "Graphene: Packing and Dependency-aware Scheduling for Data-Parallel
Clusters", OSDI 2016 (as DAGPS in arXiv 1604.07371). A set of troublesome stages is placed in an empty space
of resources and time; then what it depends on, packed backwards from it, what depends on it, packed forwards,
and the others, in four orders that leave no stage without a place. The order of the starts is the rank.

Departures:
- the space is the job's share, not the whole cluster, and stages are placed in few units of tasks;
- of each score at most three thresholds are tried;
- ranks are compared by the length of the schedule that list scheduling makes of them, which is what they are
  used for, and bottom levels are among them: so no rank is worse than theirs;
- jobs of more than 20 stages have the ranks of bottom levels: for 20 the search takes some 60 ms already;
- of the online part nothing is here. Overbooking, remaining work and fairness are matters of other policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from eclectus.maths.dag_plan.packing import packed
from eclectus.maths.dag_plan.profile import Profile
from eclectus.maths.dag_plan.stages import StageLeft, remaining
from eclectus.maths.dag_plan.units import Grain, Units, units_of
from eclectus.maths.stage_ranks.troublesome import Parts, divisions

MOST_STAGES = 20
GRAIN = Grain(abreast=4, waves=4, ends=2)


def dagps(stages: Sequence[StageLeft], share: Sequence[float]) -> list[float]:
    """The position of each stage in the best order found."""
    work = remaining(stages, share)
    units = units_of(work, GRAIN)
    best = _positions([-tail for tail in work.tails])
    if sum(1 for waiting in work.waiting if waiting) > MOST_STAGES:
        return [float(position) for position in best]
    shortest = _length(units, best)
    for parts in divisions(work):
        for starts in _placements(units, work.tails, parts):
            order = _positions(starts)
            length = _length(units, order)
            if length < shortest:
                best, shortest = order, length
    return [float(position) for position in best]


def _positions(keys: Sequence[float]) -> list[int]:
    positions = [0] * len(keys)
    for position, at in enumerate(sorted(range(len(keys)), key=lambda at: (keys[at], at))):
        positions[at] = position
    return positions


def _length(units: Units, order: Sequence[int]) -> int:
    return max((each.end for each in packed(units, order, inf) or []), default=0)


def _placements(units: Units, tails: Sequence[int], parts: Parts) -> list[list[float]]:
    """The start of each stage in the space, for each of the four orders of placement.

    What is placed when its parents have their places is packed forwards, and what is placed when its children
    have theirs backwards.
    """
    found = []
    for steps in (
        ((parts.others, True), (parts.children, True), (parts.parents, False)),
        ((parts.others, True), (parts.parents, False), (parts.children, True)),
        ((parts.parents, False), (parts.others, True), (parts.children, True)),
        ((parts.children, True), (parts.others, False), (parts.parents, False)),
    ):
        space = _Space(units, tails)
        space.place(parts.troublesome, forwards=True)
        for members, forwards in steps:
            space.place(members, forwards=forwards)
        found.append(space.starts)
    return found


class _Space:
    """Resources and time; the troublesome stages begin in the middle of it."""

    def __init__(self, units: Units, tails: Sequence[int]) -> None:
        self._units, self._tails = units, tails
        whole = sum(ticks * count for ticks, count in zip(units.ticks, units.units, strict=True))
        self._profile = Profile(units.quota, 3 * whole + 1)
        self._parents: list[list[int]] = [[] for _ in units.units]
        for at, children in enumerate(units.children):
            for child in children:
                self._parents[child].append(at)
        self.starts: list[float] = [inf] * len(units.units)
        self._ends = [0] * len(units.units)
        self._first, self._last = whole, whole  # of all that has a place

    def place(self, members: list[int], *, forwards: bool) -> None:
        """Place these stages, those with the longest path to the end first, or last."""
        for at in sorted(members, key=lambda at: self._tails[at], reverse=forwards):
            (self._forwards if forwards else self._backwards)(at)
        for at in members:
            self._first, self._last = min(self._first, int(self.starts[at])), max(self._last, self._ends[at])

    def _forwards(self, at: int) -> None:
        units = self._units
        start, left = (
            max([self._first, *(self._ends[parent] for parent in self._parents[at])]),
            units.units[at],
        )
        while left:
            start, count = self._profile.earliest(start, units.ticks[at], units.needs[at], left)
            self._enter(at, start, count)
            left -= count

    def _backwards(self, at: int) -> None:
        units = self._units
        placed = [int(self.starts[child]) for child in units.children[at] if self.starts[child] < inf]
        end, left = min([self._last, *placed]), units.units[at]
        while left:
            end, count = self._profile.latest(end, units.ticks[at], units.needs[at], left)
            self._enter(at, end - units.ticks[at], count)
            left -= count

    def _enter(self, at: int, start: int, count: int) -> None:
        end = start + self._units.ticks[at]
        self._profile.take(start, end, self._units.needs[at], count)
        self.starts[at], self._ends[at] = min(self.starts[at], start), max(self._ends[at], end)
