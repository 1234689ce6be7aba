"""Carbyne takes in and plans a bounded number of stages in a step, of namespaces in turn."""

from __future__ import annotations

from typing import Any

import pytest

from builders import make_engine, make_node, make_spec, make_task
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Command
from eclectus.model.events import Event, JobSeen, NodeSeen, Resumed, TaskSeen
from eclectus.model.job import Job, JobStage
from eclectus.policies.carbyne import Carbyne, planner
from eclectus.policies.place.fit import BestFit

STAGES, JOBS = 10, 12
MOST = 2 * STAGES


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "STAGES_MOST", MOST)


def chain(name: str, namespace: str = "default") -> JobSeen:
    stages = tuple(
        JobStage(f"s{at}", 1, make_spec(1), seconds=1.0 + at, parents=(at - 1,) if at else ())
        for at in range(STAGES)
    )
    return JobSeen(Job(f"uid-{name}", namespace, name, stages))


def first_task(name: str, **fields: Any) -> TaskSeen:
    return TaskSeen(make_task(f"{name}-s0", spec=make_spec(1), job=f"uid-{name}", stage="s0", **fields))


class Run:
    """An engine with room for all, and what its planner knows."""

    def __init__(self) -> None:
        order = Carbyne()
        self.engine: Engine = make_engine(BestFit(), order=order)
        self.planner = order._planner
        self.now = 1.0
        self.step(NodeSeen(make_node("n1", cpu=100)), Resumed())

    def step(self, *events: Event, seconds: float = 1.0) -> list[Command]:
        self.now += seconds
        return self.engine.step(events, self.now)

    @property
    def planned(self) -> set[str]:
        return {uid for uid, job in self.planner.jobs.items() if job.plan is not None}


def test_a_step_plans_few_stages_and_the_next_is_due_at_once_until_all_are_planned() -> None:
    run = Run()
    names = [f"j{at:02}" for at in range(JOBS)]
    run.step(*map(chain, names), *map(first_task, names))
    steps = 0
    while run.engine.next_step_at() == run.now:
        taken, planned = len(run.planner.jobs), len(run.planned)
        run.step(seconds=0.0)
        assert STAGES * (len(run.planner.jobs) - taken + len(run.planned) - planned) <= MOST
        steps += 1
    assert len(run.planned) == JOBS
    assert steps >= 2 * JOBS * STAGES / MOST - 1  # each is taken in, and then planned
    assert not run.planner.is_behind


def test_a_job_of_another_namespace_is_among_the_first() -> None:
    run = Run()
    run.step(*(chain(f"j{at:02}") for at in range(JOBS)), chain("z", "other"))
    assert "uid-z" in run.planner.jobs
    assert len(run.planner.jobs) < JOBS


def test_a_task_of_a_job_that_is_not_taken_in_waits_for_that_and_is_bound_then() -> None:
    run = Run()
    seen = [chain(f"j{at:02}") for at in range(JOBS)]
    binds = [
        each.name
        for each in run.step(*seen, *(first_task(f"j{at:02}") for at in range(JOBS)))
        if isinstance(each, Bind)
    ]
    assert 0 < len(binds) < JOBS
    while run.engine.next_step_at() == run.now:
        binds += [each.name for each in run.step(seconds=0.0) if isinstance(each, Bind)]
    assert sorted(binds) == [f"j{at:02}-s0" for at in range(JOBS)]


def test_few_jobs_are_planned_in_the_step_in_which_they_come() -> None:
    run = Run()
    run.step(chain("j0"), first_task("j0"))
    assert run.planned == {"uid-j0"}
