"""When the tasks of a DAG job must start so that it ends as early as its share allows, and not before.

Grandl and others, "Altruistic Scheduling in Multi-Resource Clusters" (Carbyne), OSDI 2016, section 3.
`planned` packs the remaining stages into the share, then moves every task as late as the end of that schedule
allows. What must start now is due; the rest of the share may be lent.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import ceil, inf
from typing import NamedTuple

from msgspec import Struct

# What is left of a DAG job, as the plan counts it: whole ticks of time and whole amounts of resources.
#
# With whole numbers, tasks that fill a share fill it exactly, and a task on the critical path is due at 0 and
# not 1e-16 s later.

TICKS_A_SECOND = 1_000_000
LEAST_TICKS = 1000  # of a task: less than any pod takes to start, and no task takes no time
ROUNDING = 1e-9  # of a share: 5.9999999999 CPUs hold two tasks of 3

Needs = tuple[tuple[int, int], ...]
"""(resource, amount) of one task, amounts above 0."""


class StageLeft(Struct, frozen=True, gc=False):
    """What has not succeeded of a stage. A stage of which nothing is left keeps its place in the list.

    `parents`: indices into the list of stages, each smaller than the stage's own. `running`: (seconds until
    they are expected to end, tasks). `most`: how many tasks may run at a time; None: no limit.
    """

    waiting: int  # tasks that have not started
    demand: tuple[int, ...]  # of one task, by resource
    seconds: float  # estimated run time of a task
    parents: tuple[int, ...] = ()
    running: tuple[tuple[float, int], ...] = ()
    most: int | None = None


class Remaining(Struct, frozen=True, gc=False):
    """The stages of a job that is planned in a share, `quota`; lists by stage."""

    quota: list[int]  # by resource: the share, and at least one task; then the limits of tasks at a time
    waiting: list[int]
    ticks: list[int]  # of a task
    needs: list[Needs]
    running: list[tuple[int, int, int]]  # (tick of the end, stage, tasks)
    parents: list[tuple[int, ...]]  # of which something is left
    children: list[list[int]]
    tails: list[int]  # ticks from the start of a task to the end of the job: the bottom level


def remaining(stages: Sequence[StageLeft], share: Sequence[float], most: int | None = None) -> Remaining:
    """The stages in ticks; `most`: how many tasks of all stages may run at a time, None: no limit.

    ValueError for what cannot be planned, with the index of the stage.
    """
    _check(stages, share)
    needs = [tuple((r, amount) for r, amount in enumerate(stage.demand) if amount) for stage in stages]
    ticks = [max(round(stage.seconds * TICKS_A_SECOND), LEAST_TICKS) for stage in stages]
    running = [
        (max(round(seconds * TICKS_A_SECOND), 1), at, tasks)
        for at, stage in enumerate(stages)
        for seconds, tasks in stage.running
    ]
    is_left = [stage.waiting > 0 or bool(stage.running) for stage in stages]
    parents = [
        tuple(parent for parent in stage.parents if is_left[parent]) if is_left[at] else ()
        for at, stage in enumerate(stages)
    ]
    children: list[list[int]] = [[] for _ in stages]
    for at, above in enumerate(parents):
        for parent in above:
            children[parent].append(at)
    tails = list(ticks)
    for at in range(len(ticks) - 1, -1, -1):
        if children[at]:
            tails[at] += max(tails[child] for child in children[at])
    quota, waiting = _quota(stages, needs, share), [stage.waiting for stage in stages]
    _add_limits(quota, needs, stages, most)
    return Remaining(quota, waiting, ticks, needs, running, parents, children, tails)


def fitting(free: Sequence[int], needs: Needs, most: int) -> int:
    """How many tasks fit into what is free, `most` at most; negative or 0: none."""
    for resource, amount in needs:
        fits = free[resource] // amount
        if fits < most:
            most = fits
    return most


def _quota(stages: Sequence[StageLeft], needs: list[Needs], share: Sequence[float]) -> list[int]:
    """The share, and at least one task of each stage: the first task of a job may exceed its share."""
    quota = [int(amount * (1.0 + ROUNDING) + ROUNDING) for amount in share]
    for stage, need in zip(stages, needs, strict=True):
        if stage.waiting:
            for resource, amount in need:
                if amount > quota[resource]:
                    quota[resource] = amount
    return quota


PLACE = 1_000_000  # of one task in a limit: units of several tasks need parts of it


def _add_limits(quota: list[int], needs: list[Needs], stages: Sequence[StageLeft], most: int | None) -> None:
    """A limit of tasks at a time is a resource more, of which each task needs one place."""
    tasks = [stage.waiting + sum(count for _, count in stage.running) for stage in stages]
    limits = [(most, range(len(stages))), *((stage.most, (at,)) for at, stage in enumerate(stages))]
    for limit, members in limits:
        if limit is not None and limit < sum(tasks[at] for at in members):
            for at in members:
                needs[at] = *needs[at], (len(quota), PLACE)
            quota.append(limit * PLACE)


def _check(stages: Sequence[StageLeft], share: Sequence[float]) -> None:
    for amount in share:
        if not 0.0 <= amount < inf:
            raise ValueError(f"a share must be finite and not negative, not {amount}")
    for at, stage in enumerate(stages):
        if not 0.0 <= stage.seconds < inf:
            raise ValueError(f"stage {at}: a run time must be finite and not negative, not {stage.seconds}")
        if len(stage.demand) != len(share) or (stage.demand and min(stage.demand) < 0) or stage.waiting < 0:
            raise ValueError(f"stage {at}: {len(share)} demands and a number of tasks, none of them negative")
        for parent in stage.parents:
            if not 0 <= parent < at:
                raise ValueError(f"stage {at}: parent {parent} is not a stage before it")
        for seconds, tasks in stage.running:
            if not (0.0 <= seconds < inf and tasks > 0):
                raise ValueError(f"stage {at}: {tasks} running tasks cannot end in {seconds} s")


# What is packed: units of tasks, as coarse as the size of a job requires.
#
# The work of a plan grows with the starts in it, so a unit is one task only where there are few:
#
# - of a stage that takes many waves in the share, a unit is a sequence of tasks, one after another;
# - of a stage of which many tasks run, their ends are rounded up to parts of a task;
# - where the plan is still too much work, a unit is also several tasks side by side.
#
# The first grain hardly changes a plan. The last makes that of 200 stages that run side by side longer by a
# third, and takes 30 ms for it instead of a minute.


class Grain(NamedTuple):
    """How many units of a stage there are at most: side by side, and one after another."""

    abreast: int
    waves: int
    ends: int  # different ends of the running tasks of a stage


WAVES_MOST = 64  # of the finest grain

GRAINS = (Grain(10**9, WAVES_MOST, 8), Grain(8, 16, 4), Grain(4, 4, 2), Grain(3, 3, 1), Grain(2, 1, 1))


class Units(Struct, frozen=True, gc=False):
    """The units of a job, lists by stage; `needs` by row: of a unit of each stage, then of a task of each."""

    quota: list[int]
    units: list[int]
    ticks: list[int]  # of a unit
    tasks: list[float]  # of a unit, side by side
    needs: list[Needs]
    running: list[tuple[int, int, int]]  # (tick of the end, row, tasks)
    blockers: list[int]  # how many parents a stage has
    children: list[list[int]]


def units_of(work: Remaining, grain: Grain) -> Units:
    """The remaining stages of a job in units of this grain."""
    units, ticks = list(work.waiting), list(work.ticks)
    tasks, needs = [1.0] * len(units), list(work.needs)
    for at, waiting in enumerate(work.waiting):
        slots = fitting(work.quota, needs[at], waiting)
        if waiting > slots * grain.waves or slots > grain.abreast:
            waves, abreast = -(-waiting // slots), min(slots, grain.abreast)
            planned_waves = min(waves, grain.waves)
            units[at] = -(-waiting * abreast * planned_waves // (slots * waves))
            ticks[at] = -(-ticks[at] * waves // planned_waves)  # so that the stage alone takes its time
            tasks[at] = slots / abreast
            needs[at] = tuple((resource, amount * slots // abreast) for resource, amount in needs[at])
    blockers = [len(parents) for parents in work.parents]
    running = _ends(work, grain.ends)
    return Units(work.quota, units, ticks, tasks, needs + work.needs, running, blockers, work.children)


def _ends(work: Remaining, most: int) -> list[tuple[int, int, int]]:
    """When running tasks end, with at most this many different ends for each run time of a stage."""
    count = [0] * len(work.ticks)
    for _, at, _ in work.running:
        count[at] += 1
    if max(count, default=0) <= most:
        return [(end, len(work.ticks) + at, tasks) for end, at, tasks in work.running]
    merged: dict[tuple[int, int], int] = {}
    for end, at, tasks in work.running:
        step = 1 if count[at] <= most else -(-work.ticks[at] // most)
        key = (-(-end // step) * step, len(work.ticks) + at)
        merged[key] = merged.get(key, 0) + tasks
    return [(end, row, tasks) for (end, row), tasks in merged.items()]


# Pack the remaining stages of a job into its share: list scheduling (Graham, 1969) by counts of tasks.
#
# Instead of a list, alignment may decide: each unit is one of the stage whose demand has the largest dot
# product with what is free of the quota then, both as parts of the quota. That is how Tetris (Grandl and
# others, SIGCOMM 2014) packs one machine, and Carbyne a share. Of equal alignments the list decides.


class Start(NamedTuple):
    """Units of one stage that start together; ticks from now."""

    end: int
    start: int
    stage: int
    units: int


class Packing:
    """The state of a schedule that is made forwards in time."""

    def __init__(self, work: Units, order: Sequence[int], *, by_alignment: bool = False) -> None:
        self.starts: list[Start] = []
        self.ends = list(work.running)  # (tick, row, units) of what has started, as a heap
        heapify(self.ends)
        self._work = work
        self._order = order
        self._free = list(work.quota)
        self._left = list(work.units)
        self._unfinished = list(work.units)
        self._blockers = list(work.blockers)
        for _, row, tasks in work.running:
            self._unfinished[row - len(work.units)] += tasks
            for resource, amount in work.needs[row]:
                self._free[resource] -= tasks * amount
        ready = (at for at, units in enumerate(work.units) if units and not work.blockers[at])
        self.ready = sorted((order[at], at) for at in ready)
        # By stage: what a unit adds to the alignment for what is free of each resource.
        self._weights = [
            [(r, amount / work.quota[r] ** 2) for r, amount in work.needs[at]] if units else []
            for at, units in enumerate(work.units if by_alignment else ())
        ]

    def start(self, now: int) -> None:
        """Start what is ready and fits, in order or by alignment."""
        work, free, left, is_any_over = self._work, self._free, self._left, False
        wanted = self._best_aligned() if self._weights else left
        for _, at in self.ready:
            units = fitting(free, work.needs[at], wanted[at])
            if units > 0:
                end = now + work.ticks[at]
                self.starts.append(Start(end, now, at, units))
                heappush(self.ends, (end, at, units))
                left[at] -= units
                is_any_over = is_any_over or not left[at]
                for resource, amount in work.needs[at]:
                    free[resource] -= units * amount
        if is_any_over:
            self.ready = [entry for entry in self.ready if left[entry[1]]]

    def _best_aligned(self) -> list[int]:
        """By stage, how many units start if each one is of the stage that is aligned best then."""
        free, started = list(self._free), [0] * len(self._left)
        while True:
            best, most = -1, -1.0
            for _, at in self.ready:
                if started[at] < self._left[at] and fitting(free, self._work.needs[at], 1) > 0:
                    alignment = sum([free[r] * weight for r, weight in self._weights[at]])
                    if alignment > most:
                        best, most = at, alignment
            if best < 0:
                return started
            started[best] += 1
            for resource, amount in self._work.needs[best]:
                free[resource] -= amount

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
            for child in () if self._unfinished[stage] else work.children[stage]:
                self._blockers[child] -= 1
                if not self._blockers[child] and self._left[child]:
                    insort(self.ready, (self._order[child], child))
        return now


def packed(
    work: Units, order: Sequence[int], most_steps: float, *, by_alignment: bool = False
) -> list[Start] | None:
    """Start everything as early as its parents and the quota allow, in this order of precedence of stages.

    `order`: the position of each stage, smallest first. `by_alignment`: it decides only among stages that
    are aligned equally with what is free. What runs holds its part of the quota until it ends. None if this,
    and moving the starts to later times, would take more than about `most_steps` steps.
    """
    if by_alignment and sum(work.units) * len(work.units) > most_steps:
        return None  # each unit may be compared with those of all stages
    packing, steps = Packing(work, order, by_alignment=by_alignment), 0
    packing.start(0)
    while packing.ends:
        steps += len(packing.ready)
        starts = len(packing.starts)
        if steps + starts * (len(work.units) + starts // 8) > most_steps:
            return None
        packing.start(packing.finish())
    return packing.starts


class FreeOverTime:
    """What is free of a quota, by time: `free[i]` from `edges[i]` to `edges[i + 1]`."""

    def __init__(self, quota: Sequence[int], length: int) -> None:
        self.edges = [0, length]
        self.free = [list(quota)]

    def take(self, start: int, end: int, needs: Needs, units: int) -> None:
        """Units run from start to end."""
        for part in range(self._edge(start), self._edge(end)):
            free = self.free[part]
            for resource, amount in needs:
                free[resource] -= units * amount

    def latest(self, end: int, ticks: int, needs: Needs, most: int) -> tuple[int, int]:
        """The latest interval of this length until `end` in which a unit fits, and how many: there is one."""
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
        """The start of the earliest such interval from `start`, and how many units fit: there is one."""
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
        end = bounds[stage]
        for child in work.children[stage]:
            end = min(end, first[child])
        while left:
            end, units = profile.latest(end, ticks, needs, left)
            profile.take(end - ticks, end, needs, units)
            moved.append(Start(end, end - ticks, stage, units))
            left -= units
        bounds[stage], first[stage] = end, end - ticks
    return moved


# The plan of a DAG job in a share: when it ends, and when each task must start at the latest. No schedule is
# shorter than the critical path, nor than the work over the share.


def _critical_path(work: Remaining) -> int:
    ends = [0] * len(work.waiting)
    for end, stage, _ in work.running:
        ends[stage] = max(ends[stage], end)
    for at, waiting in enumerate(work.waiting):
        if waiting:
            start = max((ends[parent] for parent in work.parents[at]), default=0)
            ends[at] = max(ends[at], start + work.ticks[at])
    return max(ends, default=0)


def _work_over_share(work: Remaining) -> float:
    """By resource, the amounts times ticks that are left, over the quota.

    What runs above the quota leaves it when the first of it ends, so only the part within the quota counts.
    """
    waiting, running, held = ([0] * len(work.quota) for _ in range(3))
    for at, tasks in enumerate(work.waiting):
        for resource, amount in work.needs[at]:
            waiting[resource] += tasks * work.ticks[at] * amount
    for end, at, tasks in work.running:
        for resource, amount in work.needs[at]:
            running[resource] += tasks * end * amount
            held[resource] += tasks * amount
    longest = 0.0
    for quota, to_start, started, holding in zip(work.quota, waiting, running, held, strict=True):
        if quota:
            within = started * quota / holding if holding > quota else started
            longest = max(longest, (to_start + within) / quota)
    return longest


HALF_A_TICK = 0.5 / TICKS_A_SECOND
MOST_STEPS = 100_000  # of a plan: about 10 ms


class Chunk(Struct, frozen=True, gc=False):
    """Tasks of one stage that start at the same time; seconds from the time of the plan.

    `end` is that of the last task, where the stage is planned in sequences of tasks.
    """

    start: float
    end: float
    stage: int
    tasks: int


class Plan(Struct, frozen=True, gc=False):
    """When a job ends in its share, and the latest starts of what waits, in their order."""

    finish_seconds: float  # from the time of the plan to the end of the job
    least_seconds: float  # a lower bound of it: critical path, or work over share
    latest: tuple[Chunk, ...]

    def due(self, after_seconds: float = 0.0) -> dict[int, int]:
        """By stage, how many tasks must have started `after_seconds` after the time of the plan.

        A job that is to end x seconds before the end of its plan, because of its deadline, adds x.
        """
        found: dict[int, int] = {}
        for chunk in self.latest:
            if chunk.start > after_seconds + HALF_A_TICK:
                break
            found[chunk.stage] = found.get(chunk.stage, 0) + chunk.tasks
        return found

    def next_of(self, stage: int, started: int = 0) -> Chunk | None:
        """With which tasks of a stage the next one starts, if so many have started since the plan.

        None if the plan has nothing more of the stage.
        """
        for chunk in self.latest:
            if chunk.stage == stage:
                started -= chunk.tasks
                if started < 0:
                    return chunk
        return None

    def next_start(self, after_seconds: float = 0.0) -> float | None:
        """The first latest start after that, in seconds from the time of the plan; None: there is none."""
        later = (chunk.start for chunk in self.latest if chunk.start > after_seconds + HALF_A_TICK)
        return next(later, None)


def planned(
    stages: Sequence[StageLeft],
    share: Sequence[float],
    ranks: Sequence[float] | None = None,
    *,
    by_alignment: bool = False,
    most: int | None = None,
) -> Plan:
    """Plan the remaining stages of a job in its share, amounts by resource.

    `ranks`: of each stage, least first; None: the longest path to the end of the job first. `by_alignment`:
    the stage that is aligned best with what is free of the share first, and of equal ones that of least rank.
    `most`: how many tasks may run at a time.
    A share that holds no task of some stage is planned as if it held one. ValueError for numbers that are
    negative or not finite, and for parents that do not come before their children.
    """
    work = remaining(stages, share, most)
    order = positions([-tail for tail in work.tails] if ranks is None else ranks)
    units, starts = _packed(work, order, by_alignment=by_alignment)
    length = max([0, *(each.end for each in starts), *(end for end, _, _ in units.running)])
    latest = right_justified(units, starts, length)
    # If nothing need start now, all may start earlier, and the job ends earlier. So a job of which nothing
    # runs always has something due.
    spare = 0 if work.running else min((each.start for each in latest), default=0)
    return Plan(
        (length - spare) / TICKS_A_SECOND,
        max(_critical_path(work), _work_over_share(work)) / TICKS_A_SECOND,
        _chunks(latest, spare, units, work.waiting),
    )


def _packed(work: Remaining, order: Sequence[int], *, by_alignment: bool) -> tuple[Units, list[Start]]:
    """The earliest starts of the finest units with which the plan is not too much work."""
    for grain in GRAINS[:-1]:
        units = units_of(work, grain)
        starts = packed(units, order, MOST_STEPS, by_alignment=by_alignment)
        if starts is not None:
            return units, starts
    units = units_of(work, GRAINS[-1])
    return units, packed(units, order, inf, by_alignment=by_alignment) or []


def positions(ranks: Sequence[float]) -> list[int]:
    """The position of each stage in the order of these ranks; of equal ones the first stage first."""
    found = [0] * len(ranks)
    for position, at in enumerate(sorted(range(len(ranks)), key=lambda at: (ranks[at], at))):
        found[at] = position
    return found


def _chunks(starts: list[Start], spare: int, units: Units, waiting: Sequence[int]) -> tuple[Chunk, ...]:
    """Earlier by `spare`, by start, then by stage; those of one stage at one time are one chunk."""
    merged: dict[tuple[int, int, int], int] = {}
    for end, start, stage, count in starts:
        key = (start - spare, stage, end - spare)
        merged[key] = merged.get(key, 0) + count
    left, chunks = list(waiting), []
    for (start, stage, end), count in sorted(merged.items()):
        tasks = min(ceil(count * units.tasks[stage]), left[stage])  # the last unit may be smaller
        left[stage] -= tasks
        if tasks:
            chunks.append(Chunk(start / TICKS_A_SECOND, end / TICKS_A_SECOND, stage, tasks))
    return tuple(chunks)


# The time by which a job is to end: kept from plan to plan, so that lending does not postpone it.
#
# A plan that is made anew from the present ignores what was lost before. So the deadline is absolute, and
# moves to a later time only if the job cannot help it: its share has shrunk, or work of it was lost.
#
# It also counts as due what was gained: a job that has used room of others could now end earlier in its
# share, but it is not entitled to that, and the time is worth more to others. So the deadline moves to an
# earlier time only as the share has grown: with a share of twice the size half of the time is left. What has
# grown is the dominant share: how much the job needs of other resources changes with its stages, without a
# larger claim. The project's own rules; the paper's theorem 3.1 speaks of one fixed plan.

NEGLIGIBLE = 0.01  # of the time that is left: run times are known to no more than that


class Deadline(Struct, frozen=True, gc=False):
    """A job's deadline, and by how much it was moved to a later time."""

    at: float = inf  # seconds since the epoch; inf: none yet
    slips: int = 0
    slip_seconds: float = 0.0

    def replanned(
        self, now: float, finish_at: float, *, growth: float = inf, excused: bool = False
    ) -> Deadline:
        """After a new plan that ends at `finish_at`; times are seconds since the epoch.

        `growth`: the dominant share over that of the last plan; inf if there is none, and the deadline is
        then at most `finish_at`. `excused`: since the last plan the share has shrunk or work was lost. Then a
        deadline before `finish_at` slips, if by more than the times are known.
        """
        if finish_at <= self.at:
            left = 0.0 if self.at == inf else (self.at - now) / max(growth, 1.0)
            return Deadline(max(finish_at, now + left), self.slips, self.slip_seconds)
        if not excused or finish_at - self.at <= NEGLIGIBLE * (finish_at - now):
            return self
        return Deadline(finish_at, self.slips + 1, self.slip_seconds + finish_at - self.at)
