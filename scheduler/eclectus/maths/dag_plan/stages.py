"""What is left of a DAG job, as the plan counts it: whole ticks of time and whole amounts of resources.

With whole numbers, tasks that fill a share fill it exactly, and a task on the critical path is due at 0 and
not 1e-16 s later.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from msgspec import Struct

TICKS_A_SECOND = 1_000_000
LEAST_TICKS = 1000  # of a task: less than any pod takes to start, and no task takes no time
ROUNDING = 1e-9  # of a share: 5.9999999999 CPUs hold two tasks of 3

Needs = tuple[tuple[int, int], ...]
"""(resource, amount) of one task, amounts above 0."""


class StageLeft(Struct, frozen=True, gc=False):
    """What has not succeeded of a stage. A stage of which nothing is left keeps its place in the list.

    `parents`: indices into the list of stages, each smaller than the stage's own. `running`: (seconds until
    they are expected to end, tasks).
    """

    waiting: int  # tasks that have not started
    demand: tuple[int, ...]  # of one task, by resource
    seconds: float  # estimated run time of a task
    parents: tuple[int, ...] = ()
    running: tuple[tuple[float, int], ...] = ()


class Remaining(Struct, frozen=True, gc=False):
    """The stages of a job that is planned in a share, `quota`; lists by stage."""

    quota: list[int]  # by resource: the share, and at least one task
    waiting: list[int]
    ticks: list[int]  # of a task
    needs: list[Needs]
    running: list[tuple[int, int, int]]  # (tick of the end, stage, tasks)
    parents: list[tuple[int, ...]]  # of which something is left
    children: list[list[int]]
    tails: list[int]  # ticks from the start of a task to the end of the job: the bottom level


def remaining(stages: Sequence[StageLeft], share: Sequence[float]) -> Remaining:
    """The stages in ticks. ValueError for what cannot be planned, with the index of the stage."""
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
    return Remaining(
        _quota(stages, needs, share),
        [stage.waiting for stage in stages],
        ticks,
        needs,
        running,
        parents,
        children,
        _tails(ticks, children),
    )


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


def _tails(ticks: list[int], children: list[list[int]]) -> list[int]:
    tails = list(ticks)
    for at in range(len(ticks) - 1, -1, -1):
        if children[at]:
            tails[at] += max(tails[child] for child in children[at])
    return tails


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


# -- units of tasks ------------------------------------------------------------------------------

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


GRAINS = (Grain(10**9, 64, 8), Grain(8, 16, 4), Grain(4, 4, 2), Grain(3, 3, 1), Grain(2, 1, 1))


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
