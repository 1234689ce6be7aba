"""Shares are computed again where they would be others then, a few times in a step, and not for each bind."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_spec, make_task
from dag_world import DagWorld, job, stage
from eclectus.model.commands import Bind
from eclectus.model.events import BindRefused, Event, JobSeen, NodeSeen, Resumed, TaskSeen
from eclectus.model.job import Job, JobStage
from eclectus.policies.carbyne import Carbyne, planner
from eclectus.policies.carbyne.planned_job import RESOURCES_MOST, Offered
from eclectus.policies.carbyne.planner import Planner
from eclectus.policies.place.fit import BestFit

SPEC = make_spec(1)


class Run:
    """An engine with room for all, and its planner."""

    def __init__(self, cores: int = 1_000) -> None:
        order = Carbyne()
        self.engine = make_engine(BestFit(), order=order)
        self.planner: Planner = order._planner
        self.now = 1.0
        self.binds(NodeSeen(make_node("n", cpu=cores, pods=2_000)), Resumed())

    def binds(self, *events: Event, seconds: float = 1.0) -> list[str]:
        """The names of the pods that a step with these events binds, in order."""
        self.now += seconds
        return [each.name for each in self.engine.step(events, self.now) if isinstance(each, Bind)]


def of_one_task(jobs: int, **fields: Any) -> list[Event]:
    """Jobs of a single task, which want nothing more when it is bound."""
    found: list[Event] = []
    for at in range(jobs):
        found.append(JobSeen(Job(f"uid-{at}", "default", f"j{at}", (JobStage("s", 1, SPEC, seconds=9.0),))))
        found.append(TaskSeen(make_task(f"job-{at}", spec=SPEC, job=f"uid-{at}", stage="s", **fields)))
    return found


def test_jobs_share_few_resources_however_many_names_a_kubelet_invents() -> None:
    run = Run()
    invented = tuple((f"example.com/r{at}", 1) for at in range(4 * RESOURCES_MOST))
    node = make_node("m", cpu=8)
    run.binds(NodeSeen(replace(node, allocatable=(*invented, *node.allocatable))), *of_one_task(1))
    resources = run.planner.offered.resources
    assert len(resources) == RESOURCES_MOST
    assert {"cpu", "memory"} <= set(resources)
    (of_job,) = run.planner.jobs.values()
    assert len(of_job.share) == RESOURCES_MOST


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often shares are computed, and for how many jobs together."""
    counts, compute = Counter[str](), planner.set_shares

    def counted(jobs: Any, *rest: Any) -> None:
        counts.update(times=1, jobs=len(jobs))
        compute(jobs, *rest)

    monkeypatch.setattr(planner, "set_shares", counted)
    return counts


def test_shares_of_twice_as_many_jobs_cost_twice_as_much_though_each_bind_leaves_one_that_wants_nothing(
    shared: Counter[str],
) -> None:
    costs = []
    for jobs in (50, 100):
        run = Run()
        shared.clear()
        assert len(run.binds(*of_one_task(jobs))) == jobs
        costs.append(shared["jobs"])
    assert costs[1] <= 2 * costs[0]


def test_shares_are_computed_a_few_times_in_a_step_whatever_changes_them(
    monkeypatch: pytest.MonkeyPatch, shared: Counter[str]
) -> None:
    """Services come in turn with last tasks of jobs: what services hold changes all shares."""
    monkeypatch.setattr(planner, "SHARED_MOST", 4)
    run, events = Run(), of_one_task(40)
    service = make_spec(1, long_running=True)
    for at in range(40):
        events[2 * at + 1] = TaskSeen(
            make_task(f"job-{at}", spec=SPEC, job=f"uid-{at}", stage="s", priority=2 * at)
        )
        events.append(TaskSeen(make_task(f"service-{at}", spec=service, priority=2 * at + 1)))
    assert len(run.binds(*events)) == 80
    assert shared["times"] == 4
    assert run.engine.next_step_at() == run.now
    run.binds(seconds=0.0)
    assert shared["times"] == 5
    assert not run.planner.is_behind
    held = dict(run.planner.offered.amounts(run.planner.plain.by_path["default/"].share))
    assert held == {"cpu": 40_000}


def test_a_job_lends_while_another_wants_room() -> None:
    run, spare = Run(), JobStage("spare", 1, SPEC, seconds=1.0)
    lender = Job("uid-lender", "default", "lender", (JobStage("long", 1, SPEC, seconds=9.0), spare))
    other, pod = of_one_task(1)
    run.binds(JobSeen(lender), other)
    run.binds()
    assert run.planner.jobs["uid-lender"].lent_room.is_all
    assert run.binds(pod) == ["job-0"]
    assert not run.planner.jobs["uid-lender"].lent_room.is_all, "nobody has use for it"
    run.binds()
    run.binds(BindRefused("uid-job-0", "n", "Conflict"))
    assert run.planner.jobs["uid-lender"].lent_room.is_all


def test_a_bind_of_a_pod_counts_the_pods_of_its_own_namespace_only(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counter[str]()
    vector = Offered.vector

    def counting(self: Offered, amounts: Any) -> Any:
        counted["vectors"] += 1
        return vector(self, amounts)

    monkeypatch.setattr(Offered, "vector", counting)
    costs = []
    for namespaces in (40, 80):
        run = Run()
        counted.clear()
        pods = (replace(make_task(f"p{at}", spec=SPEC), namespace=f"n{at}") for at in range(namespaces))
        assert len(run.binds(*map(TaskSeen, pods))) == namespaces
        costs.append(counted["vectors"])
    assert costs[1] <= 2 * costs[0] + 10


def jobs_of(random: Random, name: str) -> list[Job]:
    return [
        job(
            f"{name}-{at}",
            *(
                stage(
                    f"s{of}",
                    random.randrange(1, 9),
                    random.choice([300, 500, 1_500]),
                    random.choice([1.0, 2.0, 5.0]),
                    *([random.randrange(of)] if of and random.random() < 0.7 else []),
                )
                for of in range(random.randrange(1, 4))
            ),
        )
        for at in range(random.randrange(1, 6))
    ]


@pytest.mark.parametrize("settings", [{}, {"overhang": "bounded"}, {"leftover": "none"}])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_decided_is_what_shares_computed_after_each_bind_would_say(
    seed: int, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def outcome() -> object:
        random = Random(seed)
        engine = make_engine(BestFit(), order=Carbyne(**settings))
        run = DagWorld(engine, [make_node(f"n{at}", cpu=2, pods=500) for at in range(2)])
        run.fails_once |= {("1.0-0", "s0"), ("4.0-1", "s0")}
        for until in (1.0, 2.5, 4.0, 9.0):
            run.submit(*jobs_of(random, str(until)))
            run.run(until)
        return run.run().starts, run.plans

    found = outcome()
    is_to_share = Planner._is_to_share

    def always(self: Planner) -> bool:
        self._is_stale |= self._wanting_differs
        return is_to_share(self)

    monkeypatch.setattr(Planner, "_is_to_share", always)
    monkeypatch.setattr(planner, "SHARED_MOST", 10**9)
    assert found == outcome()
