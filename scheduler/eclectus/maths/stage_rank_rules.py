"""Which stage of a DAG job goes first, where several are ready: ranks of the stages, least first.

Each rule is a function of the remaining stages and the job's share, amounts by resource; STAGE_RANKS names
them. It raises ValueError for numbers that are negative or not finite. A stage of which nothing waits has a
rank too. STAGE_ORDERS adds the order that no ranks can say, because it follows what is free: by alignment.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from eclectus.maths import dag_plan


def bottom_level(stages: Sequence[dag_plan.StageLeft], share: Sequence[float]) -> list[float]:
    """Critical path first: minus the longest path from a stage to the end of the job.

    Hu, "Parallel sequencing and assembly line problems", Operations Research 9, 1961.
    """
    return [-float(tail) for tail in dag_plan.remaining(stages, share).tails]


def breadth_first(stages: Sequence[dag_plan.StageLeft], share: Sequence[float]) -> list[float]:
    """0 for stages without parents that are left, 1 for their children, and so on.

    Carbyne's evaluation runs it inside the jobs of its DRF baseline (Grandl and others, OSDI 2016, part 7).
    """
    depths: list[float] = []
    for above in dag_plan.remaining(stages, share).parents:
        depths.append(1.0 + max((depths[parent] for parent in above), default=-1.0))
    return depths


# Which stages of a job are hard to place: long ones, and ones that leave much of the share unused.
#
# Grandl, Kandula, Rao, Akella, Kulkarni, "Graphene", OSDI 2016; sets of stages are bits of a number.
#
#     LongScore(s) = run time of a task / longest run time of a task of the job
#     FragScore(s) = time of the stage by its work alone / its time in the share, alone and in whole waves
#
# The troublesome set for thresholds l and f has all stages with LongScore >= l or FragScore <= f, and all
# that lie on a path between two of these.

MOST_THRESHOLDS = 3  # of each score: the hardest stages, and quantiles of the others


class Parts(NamedTuple):
    """The waiting stages of a job: a troublesome set, its ancestors, its descendants, all others."""

    troublesome: list[int]
    parents: list[int]
    children: list[int]
    others: list[int]


def divisions(work: dag_plan.Remaining) -> Iterator[Parts]:
    """One for each different troublesome set that leaves something out."""
    waiting = [at for at, tasks in enumerate(work.waiting) if tasks]
    everything = sum(1 << at for at in waiting)
    above, below = _relatives(work)
    longest = max((work.ticks[at] for at in waiting), default=1)
    scores = {at: (-work.ticks[at] / longest, _fragmentation(work, at)) for at in waiting}
    seen = {0, everything}
    for least_long in _thresholds([score for score, _ in scores.values()]):
        for most_fragmented in _thresholds([score for _, score in scores.values()]):
            chosen = [
                at for at, score in scores.items() if score[0] <= least_long or score[1] <= most_fragmented
            ]
            before, after, found = 0, 0, sum(1 << at for at in chosen)
            for at in chosen:
                before |= above[at]
                after |= below[at]
            found = (found | (before & after)) & everything
            if found not in seen:
                seen.add(found)
                before, after = before & everything & ~found, after & everything & ~found
                sets = (found, before, after, everything & ~(found | before | after))
                members = ([at for at in range(each.bit_length()) if each >> at & 1] for each in sets)
                yield Parts(*members)


def _relatives(work: dag_plan.Remaining) -> tuple[list[int], list[int]]:
    stages = len(work.ticks)
    above, below = [0] * stages, [0] * stages
    for at in range(stages):
        for parent in work.parents[at]:
            above[at] |= above[parent] | 1 << parent
    for at in reversed(range(stages)):
        for child in work.children[at]:
            below[at] |= below[child] | 1 << child
    return above, below


def _fragmentation(work: dag_plan.Remaining, at: int) -> float:
    """FragScore: 1 if whole waves use up the share."""
    waiting = work.waiting[at]
    waves = -(-waiting // dag_plan.fitting(work.quota, work.needs[at], waiting))
    shares = (waiting * amount / work.quota[resource] for resource, amount in work.needs[at])
    return max(shares, default=1.0) / waves


def _thresholds(scores: list[float]) -> list[float]:
    """Some of the scores, ascending, after one that none reaches."""
    ordered = sorted(set(scores))
    step = max(1, -(-len(ordered) // MOST_THRESHOLDS))
    return [-float("inf"), *ordered[::step]]


# Troublesome stages first (DAGPS): place what is hard to place, then all else around it.
#
# Grandl, Kandula, Rao, Akella, Kulkarni, "Graphene: Packing and Dependency-aware Scheduling for Data-Parallel
# Clusters", OSDI 2016 (as DAGPS in arXiv 1604.07371). A set of troublesome stages is placed in an empty space
# of resources and time; then what it depends on, packed backwards from it, what depends on it, packed
# forwards, and the others, in four orders that leave no stage without a place. The order of the starts is the
# rank.
#
# Departures:
# - the space is the job's share, not the whole cluster, and stages are placed in few units of tasks;
# - of each score at most three thresholds are tried;
# - ranks are compared by the length of the schedule that list scheduling makes of them, which is what they
#   are used for, and bottom levels are among them: so no rank is worse than theirs;
# - jobs of more than 20 stages have the ranks of bottom levels: for 20 the search takes some 60 ms already;
# - of the online part nothing is here: overbooking, remaining work and fairness belong to other policies.

MOST_STAGES = 20
GRAIN = dag_plan.Grain(abreast=4, waves=4, ends=2)


def dagps(stages: Sequence[dag_plan.StageLeft], share: Sequence[float]) -> list[float]:
    """The position of each stage in the best order found."""
    work = dag_plan.remaining(stages, share)
    units = dag_plan.units_of(work, GRAIN)
    best = dag_plan.positions([-tail for tail in work.tails])
    if sum(1 for waiting in work.waiting if waiting) > MOST_STAGES:
        return [float(position) for position in best]
    shortest = _length(units, best)
    for parts in divisions(work):
        for starts in _placements(units, work.tails, parts):
            order = dag_plan.positions(starts)
            length = _length(units, order)
            if length < shortest:
                best, shortest = order, length
    return [float(position) for position in best]


def _length(units: dag_plan.Units, order: Sequence[int]) -> int:
    return max((each.end for each in dag_plan.packed(units, order, inf) or []), default=0)


def _placements(units: dag_plan.Units, tails: Sequence[int], parts: Parts) -> list[list[float]]:
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

    def __init__(self, units: dag_plan.Units, tails: Sequence[int]) -> None:
        self._units = units
        self._tails = tails
        whole = sum(ticks * count for ticks, count in zip(units.ticks, units.units, strict=True))
        self._profile = dag_plan.FreeOverTime(units.quota, 3 * whole + 1)
        self._parents: list[list[int]] = [[] for _ in units.units]
        for at, children in enumerate(units.children):
            for child in children:
                self._parents[child].append(at)
        self.starts: list[float] = [inf] * len(units.units)
        self._ends = [0] * len(units.units)
        self._first = whole  # first and last: of all that has a place
        self._last = whole

    def place(self, members: list[int], *, forwards: bool) -> None:
        """Place these stages, those with the longest path to the end first, or last."""
        for at in sorted(members, key=lambda at: self._tails[at], reverse=forwards):
            self._place_stage(at, forwards)
        for at in members:
            self._first, self._last = min(self._first, int(self.starts[at])), max(self._last, self._ends[at])

    def _place_stage(self, at: int, forwards: bool) -> None:
        ticks, needs, left = self._units.ticks[at], self._units.needs[at], self._units.units[at]
        below = (int(self.starts[child]) for child in self._units.children[at] if self.starts[child] < inf)
        start = max([self._first, *(self._ends[parent] for parent in self._parents[at])])
        end = min([self._last, *below])
        while left:
            if forwards:
                start, count = self._profile.earliest(start, ticks, needs, left)
                end = start + ticks
            else:
                end, count = self._profile.latest(end, ticks, needs, left)
                start = end - ticks
            self._profile.take(start, end, needs, count)
            self.starts[at], self._ends[at] = min(self.starts[at], start), max(self._ends[at], end)
            left -= count


StageRanks = Callable[[Sequence[dag_plan.StageLeft], Sequence[float]], list[float]]

STAGE_RANKS: Mapping[str, StageRanks] = {"cp": bottom_level, "bfs": breadth_first, "dagps": dagps}


class StageOrder(NamedTuple):
    """Which ready stage is packed first: that of least rank, or the best aligned one, and then by rank."""

    ranks: StageRanks
    by_alignment: bool = False


STAGE_ORDERS: Mapping[str, StageOrder] = {
    **{name: StageOrder(rule) for name, rule in STAGE_RANKS.items()},
    "tetris": StageOrder(bottom_level, by_alignment=True),
}
