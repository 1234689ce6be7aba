"""A DAG job planned one task at a time by exhaustive search: what `eclectus.maths.dag_plan` must equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eclectus.maths.dag_plan import StageLeft


class Run(NamedTuple):
    """One task in a schedule, in whole seconds."""

    end: int
    start: int
    stage: int


def list_schedule(
    stages: Sequence[StageLeft], share: Sequence[int], *, by_alignment: bool = False
) -> list[Run]:
    """The waiting tasks, those with the longest path to the end first, second by second.

    `by_alignment`: of those that fit the one with the best alignment first, and of equal ones as before.
    """
    tails = bottom_levels(stages)
    order = sorted(range(len(stages)), key=lambda at: (-tails[at], at))
    held, left = running(stages), [stage.waiting for stage in stages]
    placed: list[Run] = []
    now = 0
    while any(left):
        found = []
        for at in order:
            ready = all(
                not left[parent] and all(run.end <= now for run in held + placed if run.stage == parent)
                for parent in stages[at].parents
            )
            run = Run(now + int(stages[at].seconds), now, at)
            if ready and left[at] and fits([*held, *placed, run], run, stages, share):
                found.append(run)
        if not found:
            now += 1
            continue
        run = found[0]
        if by_alignment:
            run = max(found, key=lambda each: alignment([*held, *placed], each, stages, share))
        placed.append(run)
        left[run.stage] -= 1
    return placed


def alignment(runs: list[Run], run: Run, stages: Sequence[StageLeft], share: Sequence[int]) -> float:
    """Of a task's demand and what is free at its start, both as parts of the share."""
    return sum(
        (share[r] - sum(stages[each.stage].demand[r] for each in runs if each.start <= run.start < each.end))
        * (amount / share[r] ** 2)
        for r, amount in enumerate(stages[run.stage].demand)
        if amount
    )


def justified(stages: Sequence[StageLeft], share: Sequence[int], runs: list[Run], length: int) -> list[Run]:
    """The same tasks by decreasing end, each at the last second at which it may start."""
    held = running(stages)
    moved: list[Run] = []
    for run in sorted(runs, reverse=True):
        children = {at for at, stage in enumerate(stages) if run.stage in stage.parents}
        end = min([length, *(other.start for other in moved if other.stage in children)])
        seconds = run.end - run.start
        while not fits(
            [*held, *moved, Run(end, end - seconds, run.stage)],
            Run(end, end - seconds, run.stage),
            stages,
            share,
        ):
            end -= 1
        moved.append(Run(end, end - seconds, run.stage))
    return moved


def running(stages: Sequence[StageLeft]) -> list[Run]:
    """The running tasks, as if they had started now."""
    return [
        Run(int(seconds), 0, at)
        for at, stage in enumerate(stages)
        for seconds, tasks in stage.running
        for _ in range(tasks)
    ]


def fits(runs: list[Run], run: Run, stages: Sequence[StageLeft], share: Sequence[int]) -> bool:
    """Whether all resources that this task needs suffice for these tasks, in each second of its run."""
    return all(
        sum(stages[each.stage].demand[r] for each in runs if each.start <= second < each.end) <= share[r]
        for second in range(run.start, run.end)
        for r, amount in enumerate(stages[run.stage].demand)
        if amount
    )


def bottom_levels(stages: Sequence[StageLeft]) -> list[int]:
    """Seconds from the start of a task of each stage to the end of the job; what has ended counts nothing."""
    levels = [0] * len(stages)
    for at in reversed(range(len(stages))):
        children = [
            levels[child]
            for child, stage in enumerate(stages)
            if at in stage.parents and (stage.waiting or stage.running)
        ]
        levels[at] = int(stages[at].seconds) + max(children, default=0)
    return levels
