"""What a namespace's pods may cost in a step: its fuel, and the terms of those that wait."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.engine.event_handlers import CHANGE_SECONDS
from eclectus.engine.pod_specs import late_pods
from eclectus.explain.pod import pod_explanation
from eclectus.feasibility.scores_by_pods import HOSTNAME
from eclectus.model.commands import Bind, Command
from eclectus.model.events import (
    BindConfirmed,
    Event,
    NodeSeen,
    PodSelectorSeen,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import PodAffinityTerm, PodSelector, Requirement, Task

SERVICES, PODS = 40, 30
LABELS = tuple((f"l{at:02}", "v") for at in range(SERVICES))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A namespace may compare 100 times in a step, and its waiting pods may have four terms."""
    monkeypatch.setattr(late_pods, "OF_ONE_NAMESPACE_MOST", 100)
    monkeypatch.setattr(late_pods, "FEW", 10)
    monkeypatch.setattr(late_pods, "TERMS_MOST", 4)


class Cluster:
    """An engine whose binds are confirmed in the next step."""

    def __init__(self, *events: Event) -> None:
        self.engine: Engine = make_engine()
        self.now = 1.0
        self.bound: list[str] = []  # names
        self._confirmed: list[Event] = []  # binds of the last step
        self.step(NodeSeen(make_node("n1", cpu=100, labels={HOSTNAME: "n1"})), *events, Resumed())

    def step(self, *events: Event, seconds: float = 0.01) -> list[Command]:
        self.now += seconds
        commands = self.engine.step([*self._confirmed, *events], self.now)
        binds = [each for each in commands if isinstance(each, Bind)]
        self.bound += [each.name for each in binds]
        self._confirmed = [BindConfirmed(each.uid, each.node) for each in binds]
        return commands

    def explained(self, task: Task) -> str:
        return self.engine.read(pod_explanation, (task.namespace, task.name), self.now).state

    def run_while_due(self) -> int:
        steps = 0
        while self.engine.next_step_at() == self.now:
            self.step(seconds=0.0)
            steps += 1
        return steps


def services(count: int = SERVICES) -> list[PodSelectorSeen]:
    """Each requires one of the labels, so that a pod with all of them is compared with each."""
    return [
        PodSelectorSeen(PodSelector("Service", "default", key, (Requirement(key, "In", (value,)),)))
        for key, value in LABELS[:count]
    ]


def pod(name: str, **fields: Any) -> Task:
    """A pod with all labels, and one that no other has: those of equal labels are compared once."""
    return make_task(name, **{"cpu": 1, "labels": (*LABELS, ("name", name)), **fields})


def elsewhere(name: str, **fields: Any) -> Task:
    return replace(make_task(name, **fields), namespace="other")


# -- fuel ------------------------------------------------------------------------------------------


def test_services_times_pods_of_one_namespace_are_compared_a_bounded_number_a_step() -> None:
    cluster = Cluster(*services())
    spread = cluster.engine._event_handlers._specs.default_spread
    cluster.step(*(TaskSeen(pod(f"p{at}")) for at in range(PODS)))
    most = spread._selectors.compared
    assert most <= 100 + SERVICES
    steps = 0
    while cluster.engine.next_step_at() == cluster.now:
        before = spread._selectors.compared
        cluster.step(seconds=0.0)
        assert spread._selectors.compared - before <= 2 * (100 + SERVICES)
        steps += 1
    assert steps >= PODS * SERVICES / (100 + SERVICES) - 1
    assert cluster.bound == [f"p{at}" for at in range(PODS)]


def test_pods_with_equal_labels_are_compared_with_services_once_until_one_changes() -> None:
    cluster = Cluster(*services())
    spread = cluster.engine._event_handlers._specs.default_spread
    cluster.step(*(TaskSeen(pod(f"p{at}", cpu=200, labels=LABELS)) for at in range(PODS)))
    assert spread._selectors.compared == SERVICES
    cluster.step(
        PodSelectorSeen(PodSelector("Service", "default", "l00", (Requirement("l01", "In", ("v",)),)))
    )
    cluster.run_while_due()
    assert spread._selectors.compared == 2 * SERVICES - 1, "two Services require the same now"
    found = {task.spec.preferred_spread for task in cluster.engine._state.pending.values()}
    assert [len(each) for each in found] == [2]
    assert "l00" not in {requirement.key for each in found for requirement in each[0].selector}


def test_a_service_costs_as_much_as_it_requires() -> None:
    """Labels of a pod are compared with each requirement, so a Service with forty costs forty times one."""
    required = tuple(Requirement(key, "In", (value,)) for key, value in LABELS)
    cluster = Cluster(PodSelectorSeen(PodSelector("Service", "default", "all", required)))
    cluster.step(TaskSeen(pod("p0")))
    assert cluster.engine._event_handlers._specs.default_spread._selectors.compared == len(LABELS)


def test_a_pod_of_another_namespace_is_bound_in_the_step_in_which_it_comes() -> None:
    cluster = Cluster(*services())
    cluster.step(*(TaskSeen(pod(f"p{at}")) for at in range(PODS)), TaskSeen(elsewhere("other")))
    assert "other" in cluster.bound
    assert len(cluster.bound) < PODS


def test_a_late_pod_says_why_and_is_counted() -> None:
    cluster = Cluster(*services())
    tasks = [pod(f"p{at}") for at in range(PODS)]
    cluster.step(*map(TaskSeen, tasks))
    assert cluster.explained(tasks[-1]) == "arriving"
    counts = cluster.engine.queue_counts()
    assert counts.arriving == PODS - len(cluster.bound) > 0
    cluster.run_while_due()
    assert cluster.engine.queue_counts().arriving == 0


def test_a_changed_service_has_its_pods_compared_again_within_the_fuel_of_steps() -> None:
    cluster = Cluster(*services())
    cluster.step(*(TaskSeen(pod(f"p{at}", cpu=200)) for at in range(PODS)))
    cluster.run_while_due()
    spread = cluster.engine._event_handlers._specs.default_spread
    before = spread._selectors.compared
    cluster.step(
        PodSelectorSeen(PodSelector("Service", "default", "new", (Requirement("l00", "In", ("v",)),)))
    )
    assert spread._selectors.compared - before <= 2 * (100 + SERVICES)
    assert cluster.run_while_due() >= PODS * SERVICES / (2 * (100 + SERVICES)) - 1
    assert spread._selectors.compared - before >= PODS * SERVICES


def test_pods_that_a_term_matches_now_are_not_compared_with_services_again() -> None:
    cluster = Cluster(*services())
    tasks = [pod(f"p{at}", cpu=200) for at in range(PODS)]
    cluster.step(*map(TaskSeen, tasks))
    cluster.run_while_due()
    spread = cluster.engine._event_handlers._specs.default_spread
    before = spread._selectors.compared
    cluster.step(TaskSeen(holder(0, labels=(("app", "other"),))))
    assert spread._selectors.compared == before
    assert [len(cluster.engine._state.pending[task.uid].spec.matched_terms) for task in tasks] == [2] * PODS


def test_a_term_completes_no_pod_whose_turn_has_not_come() -> None:
    cluster = Cluster(*services())
    tasks = [pod(f"p{at}", cpu=200) for at in range(PODS)]
    cluster.step(*map(TaskSeen, tasks), TaskSeen(elsewhere("o", cpu=200, anti_affinity_terms=terms_of(0))))
    arriving = cluster.engine.queue_counts().arriving
    assert arriving > PODS / 2
    cluster.run_while_due()
    assert [len(cluster.engine._state.pending[task.uid].spec.matched_terms) for task in tasks] == [2] * PODS


def test_terms_that_are_compared_with_the_pods_of_all_delay_those_of_their_namespace_alone() -> None:
    many = [elsewhere(f"o{at}", cpu=200, labels=(("app", f"o{at}"),)) for at in range(120)]
    cluster = Cluster(*map(TaskSeen, many))
    cluster.step(*(TaskSeen(twin(at)) for at in range(4)), TaskSeen(elsewhere("last")))
    assert [cluster.explained(twin(at)) for at in range(4)] == ["unschedulable"] + ["arriving"] * 3
    assert cluster.bound == ["last"]
    assert cluster.run_while_due() == 3
    assert cluster.explained(twin(3)) == "unschedulable"
    terms = {len(task.spec.matched_terms) for task in cluster.engine._state.pending.values()}
    assert terms == {4}


def test_a_pod_that_is_being_deleted_is_compared_with_nothing() -> None:
    cluster = Cluster(*services())
    spread = cluster.engine._event_handlers._specs.default_spread
    cluster.step(*(TaskSeen(pod(f"p{at}", deleting=True)) for at in range(PODS)))
    assert spread._selectors.compared == 0
    assert cluster.explained(pod("p0")) == "deleting"


@pytest.mark.parametrize("end", ["gone", "bound elsewhere"])
def test_a_late_pod_that_is_gone_or_bound_is_forgotten(end: str) -> None:
    cluster = Cluster(*services())
    tasks = [pod(f"p{at}") for at in range(PODS)]
    cluster.step(*map(TaskSeen, tasks))
    last = tasks[-1]
    assert cluster.explained(last) == "arriving"
    cluster.step(TaskGone(last.uid) if end == "gone" else TaskSeen(replace(last, node="n1", phase="Running")))
    cluster.run_while_due()
    assert last.name not in cluster.bound
    assert len(cluster.bound) == PODS - 1


def test_of_a_late_pod_the_newest_version_counts_and_one_being_deleted_is_not_placed() -> None:
    cluster = Cluster(*services())
    tasks = [pod(f"p{at}") for at in range(PODS)]
    cluster.step(*map(TaskSeen, tasks))
    deleted, gated = tasks[-1], tasks[-2]
    cluster.step(TaskSeen(replace(deleted, deleting=True)), TaskSeen(replace(gated, gates=("g",))))
    assert cluster.explained(deleted) == "deleting"
    cluster.run_while_due()
    assert cluster.explained(gated) == "gated"
    assert len(cluster.bound) == PODS - 2


# -- terms of pods that wait ----------------------------------------------------------------------------


def terms_of(at: int) -> tuple[PodAffinityTerm, ...]:
    """Two terms that keep nearly everything away."""
    return tuple(
        PodAffinityTerm(HOSTNAME, (Requirement("app", "NotIn", (f"{at}-{each}",)),), ("default", "other"))
        for each in range(2)
    )


def twin(at: int) -> Task:
    """A pod with one of the four terms of two such pods."""
    return make_task(f"t{at}", cpu=200, anti_affinity_terms=(terms_of(at // 2)[at % 2],))


def holder(at: int, **fields: Any) -> Task:
    return make_task(f"h{at}", **{"cpu": 200, "anti_affinity_terms": terms_of(at), **fields})


def test_pods_that_fit_nowhere_lay_few_terms_on_pods_of_others() -> None:
    cluster = Cluster(*(TaskSeen(holder(at)) for at in range(8)))
    cluster.step(TaskSeen(elsewhere("other", cpu=200)))
    (task,) = [each for each in cluster.engine._state.pending.values() if each.name == "other"]
    assert len(task.spec.matched_terms) == 4
    assert [cluster.explained(holder(at)) for at in (0, 7)] == ["unschedulable", "arriving"]


def test_a_pod_that_fits_has_its_turn_behind_many_that_do_not() -> None:
    cluster = Cluster(*(TaskSeen(holder(at)) for at in range(8)))
    cluster.step(TaskSeen(holder(8, cpu=1)))
    assert cluster.bound == []
    for _ in range(5):
        cluster.now += CHANGE_SECONDS
        cluster.step()
        cluster.run_while_due()
    assert cluster.bound == ["h8"]


def test_when_a_pod_with_terms_is_gone_the_next_has_its_turn_at_once() -> None:
    cluster = Cluster(*(TaskSeen(holder(at)) for at in range(4)))
    assert cluster.explained(holder(2)) == "arriving"
    cluster.step(TaskGone(holder(0).uid))
    cluster.run_while_due()
    assert [cluster.explained(holder(at)) for at in (2, 3)] == ["unschedulable", "arriving"]


def test_a_pod_with_terms_that_wait_already_need_not_wait() -> None:
    cluster = Cluster(*(TaskSeen(holder(at)) for at in range(3)))
    twin = replace(holder(1), uid="uid-twin", name="twin")
    cluster.step(TaskSeen(twin))
    assert cluster.explained(twin) == "unschedulable"


def test_pods_with_equal_terms_are_completed_a_bounded_number_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_pods, "PODS_MOST", 3)
    cluster = Cluster(*(TaskSeen(holder(at)) for at in range(2)))
    twins = [replace(holder(2), uid=f"uid-{at}", name=f"t{at}") for at in range(10)]
    cluster.step(*map(TaskSeen, twins))
    assert cluster.engine.queue_counts().arriving == 10
    cluster.step(TaskGone(holder(0).uid))
    arriving = [cluster.engine.queue_counts().arriving]
    while cluster.engine.next_step_at() == cluster.now:
        cluster.step(seconds=0.0)
        arriving.append(cluster.engine.queue_counts().arriving)
    assert arriving == [7, 4, 1, 0]


def keeping_away(name: str) -> Task:
    """A pod on a node whose term matches nearly every pod of all namespaces."""
    term = PodAffinityTerm(HOSTNAME, (Requirement("own", "NotIn", (name,)),), None)
    placed = make_task(name, cpu=0, anti_affinity_terms=(term,), node="n1", phase="Running", profile="other")
    return replace(placed, namespace="tenant")


def test_terms_of_placed_pods_are_compared_with_pods_of_all_a_bounded_number_of_times_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(late_pods, "COMPARISONS_MOST", 300)
    terms, pods = 50, 30
    cluster = Cluster(*(TaskSeen(keeping_away(f"p{at}")) for at in range(terms)))
    free = make_node("n2", cpu=100, labels={HOSTNAME: "n2"})
    arrived = [replace(make_task(f"t{at}", cpu=0), namespace=f"namespace-{at}") for at in range(pods)]
    of_all = cluster.engine._state.cluster.anti_affinity
    before = of_all.compared
    cluster.step(NodeSeen(free), *map(TaskSeen, arrived))
    steps = [of_all.compared - before]
    while len(cluster.bound) < pods:
        before = of_all.compared
        cluster.step()
        steps.append(of_all.compared - before)
        assert len(steps) < 20, "each has its turn"
    assert max(steps) <= 2 * 300 + 2 * terms
    assert sum(steps) >= pods * terms
