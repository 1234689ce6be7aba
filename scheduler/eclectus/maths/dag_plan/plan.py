"""The plan of a DAG job in a share: when it ends, and when each task must start at the latest."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, inf

from msgspec import Struct

from eclectus.maths.dag_plan.packing import Start, packed, right_justified
from eclectus.maths.dag_plan.stages import (
    GRAINS,
    TICKS_A_SECOND,
    Remaining,
    StageLeft,
    Units,
    remaining,
    units_of,
)

# -- a lower bound -------------------------------------------------------------------------------

# No schedule of a job in a share is shorter: the critical path, and the work over the share.


def least_ticks(work: Remaining) -> float:
    """The larger of the two, in ticks."""
    return max(_critical_path(work), _work_over_share(work))


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


# -- the plan ------------------------------------------------------------------------------------

HALF_A_TICK = 0.5 / TICKS_A_SECOND
MOST_STEPS = 100_000  # of a plan: about 10 ms


class Chunk(Struct, frozen=True, gc=False):
    """Tasks of one stage that start at the same time; seconds from the time of the plan.

    `end` is that of the last task, where the stage is planned in sequences of tasks (`units.py`).
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

    def next_start(self, after_seconds: float = 0.0) -> float | None:
        """The first latest start after that, in seconds from the time of the plan; None: there is none."""
        for chunk in self.latest:
            if chunk.start > after_seconds + HALF_A_TICK:
                return chunk.start
        return None


def planned(
    stages: Sequence[StageLeft], share: Sequence[float], ranks: Sequence[float] | None = None
) -> Plan:
    """Plan the remaining stages of a job in its share, amounts by resource.

    `ranks`: of each stage, least first; None: the longest path to the end of the job first. A share that
    holds no task of some stage is planned as if it held one. ValueError for numbers that are negative or not
    finite, and for parents that do not come before their children.
    """
    work = remaining(stages, share)
    units, starts = _packed(work, [-tail for tail in work.tails] if ranks is None else ranks)
    length = max([0, *(each.end for each in starts), *(end for end, _, _ in units.running)])
    latest = right_justified(units, starts, length)
    # If nothing need start now, all may start earlier, and the job ends earlier. So a job of which nothing
    # runs always has something due.
    spare = 0 if work.running else min((each.start for each in latest), default=0)
    return Plan(
        (length - spare) / TICKS_A_SECOND,
        least_ticks(work) / TICKS_A_SECOND,
        _chunks(latest, spare, units, work.waiting),
    )


def _packed(work: Remaining, ranks: Sequence[float]) -> tuple[Units, list[Start]]:
    """The earliest starts of the finest units with which the plan is not too much work."""
    order = [0] * len(ranks)
    for position, at in enumerate(sorted(range(len(ranks)), key=lambda at: (ranks[at], at))):
        order[at] = position
    for grain in GRAINS[:-1]:
        units = units_of(work, grain)
        starts = packed(units, order, MOST_STEPS)
        if starts is not None:
            return units, starts
    units = units_of(work, GRAINS[-1])
    return units, packed(units, order, inf) or []


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
