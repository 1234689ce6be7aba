"""The index of unschedulable classes finds what evaluating every class would find, and evaluates few."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import make_engine, make_node, make_spec, make_task
from eclectus.cluster.nodes import Cluster
from eclectus.engine import reports
from eclectus.engine.queues.unschedulable import UnschedulableClasses
from eclectus.engine.reports import CLASSES_MOST, PAUSE_SECONDS
from eclectus.feasibility.task_class import ClassCache, TaskClass
from eclectus.model.objects import ClassKey, HostPort, Taint, Toleration
from worlds import World

DISK = [{}, {"disk": "ssd"}]
SPECS = [
    make_spec(cpu, node_selector=selector, tolerations=tolerations, **more)
    for cpu in (1, 3)
    for selector in ((), (("disk", "ssd"),))
    for tolerations, more in (
        ((), {}),
        ((Toleration("dedicated", "Exists"),), {}),
        ((), {"gpus": 1}),
        ((), {"host_ports": (HostPort(80),)}),
    )
]

node = st.builds(
    lambda at, cpu, labels, **fields: make_node(f"n{at}", cpu=cpu, labels=labels, **fields),
    at=st.integers(0, 3),
    cpu=st.sampled_from([1, 3, 16]),
    labels=st.sampled_from(DISK),
    unschedulable=st.booleans(),
    taints=st.sampled_from([(), (Taint("dedicated"),)]),
    gpus=st.integers(0, 1),
)
change = st.one_of(
    st.tuples(st.just("node"), node),
    st.tuples(st.just("drop"), st.integers(0, 3)),
    st.tuples(st.just("hold"), st.integers(0, 3), st.sampled_from(SPECS)),
    st.tuples(st.just("release"), st.integers(0, 100)),
    st.tuples(st.just("column"), st.integers(0, 5)),
    st.tuples(st.just("add"), st.sampled_from(SPECS)),
    st.tuples(st.just("ask")),
)


class Model:
    """A cluster, the index of its unschedulable classes, and the same by evaluating every class."""

    def __init__(self) -> None:
        self.cluster = Cluster(rows=2)
        self.index = UnschedulableClasses(ClassCache(self.cluster))
        self.never: dict[
            ClassKey, bool
        ] = {}  # the classes in the index, and whether they were feasible nowhere
        self.held: list[tuple[str, Any]] = []

    def apply(self, kind: str, *arguments: Any) -> None:
        getattr(self, f"_{kind}")(*arguments)

    def _node(self, made: Any) -> None:
        self.cluster.set_node(made)

    def _drop(self, at: int) -> None:
        name = f"n{at}"
        row = self.cluster.rows.get(name)
        if row is None:
            return
        for where, task in [each for each in self.held if each[0] == name]:
            self.cluster.release(row, task)
            self.held.remove((where, task))
        self.cluster.drop_node(name)

    def _hold(self, at: int, spec: Any) -> None:
        row = self.cluster.rows.get(f"n{at}")
        if row is not None:
            task = make_task(f"t{len(self.held)}", spec=spec)
            self.cluster.hold(row, task)
            self.held.append((f"n{at}", task))

    def _release(self, at: int) -> None:
        if self.held:
            name, task = self.held.pop(at % len(self.held))
            self.cluster.release(self.cluster.rows[name], task)

    def _column(self, at: int) -> None:
        self.cluster.open_columns([f"example.com/r{at}"])

    def _add(self, spec: Any) -> None:
        self.index.add((spec, ""))
        # A class that another profile has added stays: its tasks there are still to be reported again.
        self.never.setdefault((spec, ""), not TaskClass(self.cluster, spec, "").feasible_count)

    def _ask(self) -> None:
        expected = set()
        for key, was_never in self.never.items():
            fresh = TaskClass(self.cluster, *key)
            if fresh.fits_now_count or was_never != (not fresh.feasible_count):
                expected.add(key)
        found = self.index.with_room()
        assert set(found) == expected
        assert len(found) == len(expected)
        for key in found:
            self.index.discard(key)
            del self.never[key]
        assert len(self.index) == len(self.never)


@settings(max_examples=200, deadline=None)
@given(st.lists(change, max_size=60))
def test_it_finds_what_evaluating_every_class_finds(changes: list[tuple[Any, ...]]) -> None:
    model = Model()
    for each in changes:
        model.apply(*each)
    model.apply("ask")


class Counted(ClassCache):
    """Counts evaluations."""

    asked = 0

    def current(self, spec: Any, workload: str) -> TaskClass:
        self.asked += 1
        return super().current(spec, workload)


@pytest.fixture
def full() -> tuple[Cluster, UnschedulableClasses, Counted]:
    """A hundred classes that want a label that no node has, and one that only lacks room on n0."""
    cluster = Cluster()
    for at in range(4):
        cluster.set_node(make_node(f"n{at}", cpu=1))
    cluster.hold(0, make_task("there"))
    for at in range(1, 4):
        cluster.hold(at, make_task(f"there-{at}"))
    classes = Counted(cluster)
    index = UnschedulableClasses(classes)
    for at in range(100):
        index.add((make_spec(1, node_selector=(("disk", f"d{at}"),)), ""))
    index.add((make_spec(1), ""))
    classes.asked = 0
    return cluster, index, classes


def test_a_change_of_usage_evaluates_only_classes_that_may_fit(full: Any) -> None:
    cluster, index, classes = full
    cluster.release(0, make_task("there"))
    cluster.hold(1, make_task("another"))
    assert index.with_room() == [(make_spec(1), "")]
    assert classes.asked == 1


def test_a_change_of_a_node_evaluates_only_classes_that_may_fit(full: Any) -> None:
    cluster, index, classes = full
    cluster.set_node(make_node("n2", cpu=2, labels={"disk": "d7"}))
    assert index.with_room() == [(make_spec(1, node_selector=(("disk", "d7"),)), ""), (make_spec(1), "")]
    assert classes.asked == 2


def test_without_a_change_nothing_is_evaluated(full: Any) -> None:
    _, index, classes = full
    assert index.with_room() == []
    assert classes.asked == 0


def test_reports_of_many_classes_are_spread_over_steps_and_none_is_lost() -> None:
    world = World(make_engine(), make_node("n"))
    count = 2 * CLASSES_MOST + 5
    world.add(*(make_task(f"t{at}", node_selector=(("disk", f"d{at}"),)) for at in range(count)))
    assert len(world.reports) == CLASSES_MOST
    while world.engine.next_step_at() == pytest.approx(world.now + PAUSE_SECONDS):
        before = len(world.reports)
        world.step(after=PAUSE_SECONDS / 2)
        assert len(world.reports) == before
        world.step(after=PAUSE_SECONDS / 2)
        assert 0 < len(world.reports) - before <= CLASSES_MOST
    assert {report.name for report in world.reports} == {f"t{at}" for at in range(count)}
    assert len(world.reports) == count


def test_a_class_that_was_feasible_nowhere_is_found_when_a_full_node_becomes_feasible() -> None:
    """Its message changes, from one that says that no node will ever do."""
    cluster = Cluster()
    cluster.set_node(make_node("n", cpu=1))
    cluster.hold(0, make_task("there"))
    index = UnschedulableClasses(ClassCache(cluster))
    key = (make_spec(1, node_selector=(("disk", "ssd"),)), "")
    index.add(key)
    cluster.set_node(make_node("n", cpu=1, labels={"disk": "ssd"}))
    assert index.with_room() == [key]
    index.discard(key)
    index.add(key)  # feasible now, and full
    cluster.set_node(make_node("n", cpu=1, labels={"disk": "ssd", "zone": "a"}))
    assert index.with_room() == []


def test_on_more_nodes_fewer_classes_are_explained_in_a_step_at_the_same_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reports, "EVALUATED_MOST", CLASSES_MOST // 4 * 3)
    world = World(make_engine(), *(make_node(f"n{at}") for at in range(3)))
    world.add(*(make_task(f"t{at}", node_selector=(("disk", f"d{at}"),)) for at in range(CLASSES_MOST)))
    assert len(world.reports) == CLASSES_MOST // 4
    assert world.engine.next_step_at() == pytest.approx(world.now + PAUSE_SECONDS / 4)
    for _ in range(3):
        world.step(after=PAUSE_SECONDS / 4)
    assert len(world.reports) == CLASSES_MOST
