"""Large jobs are planned coarsely: few chunks, hardly longer plans, and every stage in them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from eclectus.maths.dag_plan import StageLeft, planned

SHARE = (20_000.0, 20_000.0)


def chunks(waiting: int, share: float) -> int:
    return len(planned([StageLeft(waiting, (100,), 10.0)], (share,)).latest)


def wide(stages: int, tasks: int, seed: int = 1) -> list[StageLeft]:
    """Stages side by side and one behind another, with tasks of very different size and time."""
    rng = random.Random(seed)
    return [
        StageLeft(
            1 + int(rng.expovariate(1 / tasks)),
            (rng.randint(50, 1000), rng.randint(50, 1000)),
            rng.uniform(1.0, 60.0),
            tuple(sorted(rng.sample(range(at), min(at, rng.randint(0, 2))))),
        )
        for at in range(stages)
    ]


def test_a_plan_has_as_many_chunks_as_waves_and_not_as_tasks() -> None:
    assert chunks(100, 1000.0) == chunks(10_000, 100_000.0) == 10


def test_a_stage_of_many_waves_is_planned_in_sequences() -> None:
    plan = planned([StageLeft(10_000, (100,), 10.0)], (1000.0,))
    assert len(plan.latest) <= 64
    assert plan.least_seconds == 10_000
    assert plan.finish_seconds == 10_000
    assert plan.due() == {0: 10}


def test_many_ends_of_running_tasks_are_few_in_the_plan() -> None:
    ends = tuple((0.01 * each, 1) for each in range(1, 1001))
    plan = planned([StageLeft(9000, (100,), 10.0, (), ends)], (100_000.0,))
    assert len(plan.latest) <= 8 * 10
    assert plan.finish_seconds <= plan.least_seconds + 10.0


@pytest.mark.parametrize("by_alignment", [False, True], ids=["by path", "by alignment"])
@pytest.mark.parametrize(("stages", "tasks", "longer"), [(20, 200, 1.3), (60, 1000, 1.3), (200, 10_000, 1.6)])
def test_a_coarse_plan_has_every_stage_after_its_parents_and_is_not_much_longer(
    stages: int, tasks: int, longer: float, by_alignment: bool
) -> None:
    job = wide(stages, tasks)
    plan = planned(job, SHARE, by_alignment=by_alignment)
    assert len(plan.latest) < 1200
    started: Counter[int] = Counter()
    for chunk in plan.latest:
        started[chunk.stage] += chunk.tasks
    assert all(0 < started[at] <= each.waiting for at, each in enumerate(job))
    last_end = {chunk.stage: chunk.end for chunk in plan.latest}
    for chunk in plan.latest:
        for parent in job[chunk.stage].parents:
            assert chunk.start >= last_end[parent] - 1e-6
    assert plan.least_seconds <= plan.finish_seconds <= longer * plan.least_seconds
    assert plan.due()
