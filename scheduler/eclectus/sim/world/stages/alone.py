"""How long a job would take on a part of the cluster that it has to itself: the yardstick of its fairness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import inf

from eclectus.sim.base.work import Dag, Stage

CLOSE = 1e-9  # relative: shares are fractions of amounts


def seconds_alone(dag: Dag, sizes: Sequence[Sequence[float]], share: Mapping[str, float]) -> float:
    """Time until the last task ends inside these amounts, in seconds at speed 1.

    `sizes`: of the tasks of each stage. Tasks start as soon as they fit, those of the stage with the longest
    path to the end of the job first (list scheduling by bottom levels, Hu 1961). The amounts are one pool,
    not nodes. A task that is larger than they are has what it lacks to itself.
    """
    free, running = dict(share), list[tuple[float, int]]()  # end and stage of each task
    left = [list(each) for each in sizes]
    parents = [len(stage.parents) for stage in dag.stages]
    unfinished = [len(each) for each in sizes]
    ready = [at for at, count in enumerate(parents) if not count]
    now = 0.0
    while any(unfinished):
        for at in sorted(ready, key=lambda at: -dag.stages[at].path):
            while left[at] and _fits(dag.stages[at], free, share):
                _take(dag.stages[at], free, 1)
                heappush(running, (now + left[at].pop(), at))
        now, at = heappop(running)
        _take(dag.stages[at], free, -1)
        unfinished[at] -= 1
        if not unfinished[at]:
            ready.remove(at)
            for child in dag.stages[at].children:
                parents[child] -= 1
                if not parents[child]:
                    ready.append(child)
    return now


def _fits(stage: Stage, free: Mapping[str, float], share: Mapping[str, float]) -> bool:
    """Whether one more task fits; the first is counted as no larger than the share."""
    return all(
        min(amount, share.get(name, inf)) <= free.get(name, inf) + CLOSE * amount
        for name, amount in stage.work_class.demand
        if amount
    )


def _take(stage: Stage, free: dict[str, float], times: int) -> None:
    for name, amount in stage.work_class.demand:
        if name in free:
            free[name] -= times * amount
