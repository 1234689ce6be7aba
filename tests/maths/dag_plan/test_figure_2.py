"""C1, the paper's figure 2: two jobs in equal shares of one resource, in thousandths of it."""

from __future__ import annotations

import pytest

from eclectus.maths.dag_plan import Plan, StageLeft, planned

SHARE = (500.0,)
J1 = [StageLeft(2, (80,), 0.5), StageLeft(3, (210,), 1.0), StageLeft(1, (100,), 0.1, (0, 1))]
J2 = [StageLeft(2, (290,), 1.0)]


def starts(plan: Plan) -> dict[int, list[float]]:
    """The latest start of each task, by stage."""
    found: dict[int, list[float]] = {}
    for chunk in plan.latest:
        found.setdefault(chunk.stage, []).extend([chunk.start] * chunk.tasks)
    return found


def gift(plan: Plan, job: list[StageLeft]) -> float:
    return SHARE[0] - sum(tasks * job[stage].demand[0] for stage, tasks in plan.due().items())


def test_the_first_job_ends_at_2_1_and_need_start_one_task_now() -> None:
    plan = planned(J1, SHARE)
    assert plan.finish_seconds == 2.1
    assert starts(plan) == {1: [0.0, 1.0, 1.0], 0: [1.0, 1.5], 2: [2.0]}
    assert plan.due() == {1: 1}
    assert gift(plan, J1) == 290


def test_the_second_job_ends_at_2_and_need_start_one_task_now() -> None:
    plan = planned(J2, SHARE)
    assert plan.finish_seconds == 2.0
    assert starts(plan) == {0: [0.0, 1.0]}
    assert plan.due() == {0: 1}
    assert gift(plan, J2) == 210


def test_a_second_later_the_rest_of_the_first_job_is_due_as_its_tasks_fit() -> None:
    """Two of S1 have run, one of them on leftover resources: one is left, and both tasks of S0."""
    plan = planned([StageLeft(2, (80,), 0.5), StageLeft(1, (210,), 1.0), J1[2]], SHARE)
    assert plan.finish_seconds == pytest.approx(1.1)
    assert plan.due() == {1: 1}
    assert starts(plan)[0] == [0.5, 0.5]


def test_what_is_due_later() -> None:
    plan = planned(J1, SHARE)
    assert plan.next_start() == 1.0
    assert plan.due(0.999) == {1: 1}
    assert plan.due(1.0) == {1: 3, 0: 1}
    assert plan.next_start(1.0) == 1.5
    assert plan.due(2.0) == {1: 3, 0: 2, 2: 1}
    assert plan.next_start(2.0) is None
