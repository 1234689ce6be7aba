"""Carbyne takes in and plans a bounded number of stages in a step, of namespaces in turn."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_spec, make_task
from eclectus.engine import scheduling_cycle
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Command
from eclectus.model.events import Event, JobSeen, NodeSeen, Resumed, TaskSeen
from eclectus.model.job import Job, JobStage
from eclectus.policies.carbyne import Carbyne, planned_job, planner
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


def pod_of(name: str, namespace: str, at: int) -> TaskSeen:
    task = make_task(f"{name}-{at}", spec=make_spec(1), job=f"uid-{name}", stage="s0", estimate=60.0)
    return TaskSeen(replace(task, namespace=namespace))


class Run:
    """An engine with room for all, and what its planner knows."""

    def __init__(self, order: Carbyne | None = None, cores: int = 100) -> None:
        order = order or Carbyne()
        self.engine: Engine = make_engine(BestFit(), order=order)
        self.planner = order._planner
        self.now = 1.0
        self.step(NodeSeen(make_node("n1", cpu=cores)), Resumed())

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
        assert STAGES * (len(run.planner.jobs) - taken) <= MOST
        assert STAGES * (len(run.planned) - planned) <= MOST
        steps += 1
    assert len(run.planned) == JOBS
    assert steps >= JOBS * STAGES / MOST - 1
    assert not run.planner.is_behind


def test_jobs_of_one_stage_are_planned_by_the_starts_of_their_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is the more work the more of its tasks run one after another: on one core, each of many."""
    run = Run(cores=1)
    plans, made = list[int](), planned_job.planned
    monkeypatch.setattr(planned_job, "planned", lambda *each, **how: plans.append(1) or made(*each, **how))
    few, many = (JobStage("s0", tasks, make_spec(1), seconds=1.0) for tasks in (1, MOST))
    for namespace, stage, in_a_step in (("few", few, JOBS), ("many", many, 2)):  # one of each namespace
        jobs = [Job(f"{namespace}{at}", namespace, f"{namespace}{at}", (stage,)) for at in range(JOBS)]
        plans.clear()
        run.step(*map(JobSeen, jobs))
        assert len(plans) == in_a_step
        while run.engine.next_step_at() == run.now:
            run.step(seconds=0.0)
        assert {job.uid for job in jobs} <= run.planned


def test_stages_that_each_bind_ranks_again_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bind may change the rank of every stage of its job, and a job may have many stages and tasks."""
    stages, tasks_most = 40, 20
    monkeypatch.setattr(scheduling_cycle, "TASKS_MOST", tasks_most)
    monkeypatch.setattr(planner, "STAGES_MOST", stages)
    order = Carbyne()
    run, ranked = Run(order, cores=1_000), list[int]()
    ranks = type(order).rank
    monkeypatch.setattr(type(order), "rank", lambda *each: ranked.append(len(binds)) or ranks(*each))
    of_job = Job("uid-j", "default", "j", tuple(JobStage(f"s{at}", 2, make_spec(1)) for at in range(stages)))
    names = [(f"s{at}", f"j-{at}-{task}") for task in range(2) for at in range(stages)]
    tasks = [make_task(name, spec=make_spec(1), job="uid-j", stage=stage) for stage, name in names]
    binds = list[Bind]()
    longest = 0
    for events in ([JobSeen(of_job), *map(TaskSeen, tasks)], *[()] * 60):
        ranked.clear()
        binds += [each for each in run.step(*events, seconds=0.0) if isinstance(each, Bind)]
        longest = max(longest, len(ranked))
    assert len(binds) == len(tasks)
    assert longest <= scheduling_cycle.RANKS_OF_TASK * tasks_most + 6 * stages


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


@pytest.mark.parametrize("most", [0, 1, 10_000])
def test_what_a_job_holds_is_counted_at_once_however_few_stages_a_step_plans(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Two jobs share twenty cores: one gets ten though the other has no pod, as starts are counted."""
    run = Run(Carbyne(leftover="none", altruism=0.0), cores=20)
    for name, namespace in (("a", "default"), ("b", "other")):
        stages = (JobStage("s0", 30, make_spec(1), seconds=60.0), *(chain(name).job.stages[1:]))
        run.step(JobSeen(Job(f"uid-{name}", namespace, name, stages)), pod_of(name, namespace, 0))
    run.step()
    monkeypatch.setattr(planner, "STAGES_MOST", most)
    commands = run.step(*(pod_of("a", "default", at) for at in range(1, 30)))
    assert len([each for each in commands if isinstance(each, Bind)]) == 9  # and one before


def test_few_jobs_are_planned_in_the_step_in_which_they_come() -> None:
    run = Run()
    run.step(chain("j0"), first_task("j0"))
    assert run.planned == {"uid-j0"}
