"""No schedule of a job in a share is shorter: the critical path, and the work over the share."""

from __future__ import annotations

from eclectus.maths.dag_plan.stages import Remaining


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
