"""Resources that no node offers: pods may ask for them and hold them, and open no column."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import make_engine, make_node, make_task
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import COLUMNS_MOST, COLUMNS_OF_NODE_MOST
from eclectus.feasibility.room import Room
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.commands import Bind, Report
from eclectus.model.events import NodeSeen, Resumed, TaskSeen
from eclectus.model.objects import Amounts, Node, Spec, Task

ODD = (("a.io/one", 2), ("a.io/two", 3), ("cpu", 1))


def node(name: str = "n", **others: int) -> Node:
    amounts = {"cpu": 8, "pods": 9} | {f"a.io/{resource}": amount for resource, amount in others.items()}
    return Node(name, tuple(sorted(amounts.items())))


def pod(amounts: Amounts = ODD, **fields: Any) -> Task:
    return Task("u", "n", "p", spec=Spec(requests=amounts, **fields))


def cluster_of_one() -> Cluster:
    cluster = Cluster(rows=2)
    cluster.set_node(node())
    return cluster


def test_what_pods_ask_for_opens_no_column() -> None:
    cluster = cluster_of_one()
    before, arrays = dict(cluster.columns), cluster.layers
    task_class = TaskClass(cluster, pod().spec, "")
    cluster.hold(0, pod())
    cluster.add_tentative(0, ODD)
    cluster.task_vector(ODD)
    task_class.refresh()
    assert dict(cluster.columns) == before
    assert cluster.layers is arrays  # nobody has to start over
    assert not task_class.feasible_count


def test_the_other_resources_of_such_a_pod_count() -> None:
    cluster = cluster_of_one()
    cluster.hold(0, pod())
    assert cluster.used[0, cluster.columns["cpu"]] == 1


def test_what_is_held_counts_when_a_node_offers_it_later() -> None:
    cluster = cluster_of_one()
    cluster.hold(0, pod())
    cluster.hold(0, pod(long_running=True))
    cluster.add_tentative(0, ODD)
    cluster.set_node(node("late", one=7))
    one = cluster.columns["a.io/one"]
    assert cluster.layers[:, 0, one].tolist() == [0, 4, 2, 2]
    assert "a.io/two" not in cluster.columns
    cluster.set_node(node(one=7))
    room = Room(cluster, (("a.io/one", 1),))
    assert room.overflow_at(0) == 0
    cluster.release(0, pod())
    assert cluster.used[0, one] == 2


def test_a_class_that_fitted_nowhere_fits_where_its_resource_appears() -> None:
    cluster = cluster_of_one()
    task_class = TaskClass(cluster, pod().spec, "")
    cluster.set_node(node("late", one=2, two=3))
    task_class.refresh()
    assert task_class.fits_now_rows.tolist() == [cluster.rows["late"]]


def test_nothing_stays_of_a_pod_that_has_gone() -> None:
    cluster = cluster_of_one()
    many = tuple((f"a.io/r{at:04}", 1) for at in range(3000))
    cluster.hold(0, pod(many))
    TaskClass(cluster, pod(many).spec, "")
    assert len(cluster.unoffered) == 3000
    cluster.release(0, pod(many))
    assert len(cluster.unoffered) == 0
    assert not any(many in (key, *getattr(key, "__iter__", tuple)()) for key in cluster._parts)
    assert not any(spec.requests == many for spec, _ in cluster._held)


def test_a_node_that_names_thousands_of_resources_opens_few_columns_in_all() -> None:
    cluster = Cluster()
    for version in range(3):
        cluster.set_node(node(**{f"v{version}-{at:04}": 1 for at in range(1_000)}))
    assert len(cluster.columns) == 4 + COLUMNS_OF_NODE_MOST
    assert "a.io/v0-0000" in cluster.columns
    row = cluster.set_node(node("other", new=2))
    assert cluster.allocatable[row, cluster.columns["a.io/new"]] == 2


def full_cluster() -> Cluster:
    """After nodes that name more different resources than there may be."""
    cluster = Cluster()
    for at in range(32):
        cluster.set_node(node(f"n{at}", **{f"n{at}-{each:03}": 1 for each in range(120)}))
    return cluster


def test_nodes_that_name_different_resources_open_few_columns_in_all() -> None:
    cluster = full_cluster()
    assert len(cluster.columns) == COLUMNS_MOST
    assert cluster.layers.nbytes == 4 * 8 * len(cluster.scored) * COLUMNS_MOST
    assert COLUMNS_OF_NODE_MOST < COLUMNS_MOST / 2  # one node leaves most of them to others


def test_what_is_known_counts_on_a_node_that_comes_late_and_so_do_huge_pages() -> None:
    cluster = full_cluster()
    offered = {"cpu": 8, "a.io/n0-000": 2, "a.io/new": 3, "hugepages-2Mi": 4, "hugepages-3Mi": 5}
    row = cluster.set_node(Node("late", tuple(sorted(offered.items()))))
    found = {name: cluster.allocatable[row, column] for name, column in cluster.columns.items()}
    assert {name: each for name, each in found.items() if each} == {
        "cpu": 8,
        "a.io/n0-000": 2,
        "hugepages-2Mi": 4,
    }


def test_a_pod_that_asks_for_a_resource_that_came_late_is_refused_as_if_nobody_offered_it() -> None:
    engine = make_engine()
    nodes = [node(f"n{at}", **{f"n{at}-{each:03}": 1 for each in range(120)}) for at in range(5)]
    tasks = [
        make_task(f"p{at}", spec=Spec(requests=((f"a.io/n{at}-100", 1),), score_requests=(0, 0)))
        for at in (0, 4)
    ]
    commands = engine.step([*map(NodeSeen, nodes), *map(TaskSeen, tasks), Resumed()], 1.0)
    assert [each.name for each in commands if isinstance(each, Bind)] == ["p0"]
    (report,) = [each for each in commands if isinstance(each, Report)]
    assert report.message.startswith("0/5 nodes are available: 5 Insufficient a.io/n4-100.")
    assert engine.queue_counts().resources == COLUMNS_MOST


def test_a_probe_opens_no_column() -> None:
    engine = make_engine()
    probe = make_task("probe", cpu=0, node="n", probe=True, notional_requests=(("a.io/x", 1),))
    engine.step([NodeSeen(make_node("n")), TaskSeen(probe), Resumed()], 1.0)
    assert "a.io/x" not in engine._state.cluster.columns


def test_a_node_opens_all_its_columns_at_once() -> None:
    cluster = Cluster(rows=2)
    began = cluster.shape.head
    cluster.set_node(node(**{f"r{at}": 1 for at in range(50)}))
    assert len(cluster.columns) == 4 + 50
    assert cluster.shape.head == began + 2  # the arrays were replaced once, and a row has changed


NAMES = ("a.io/one", "a.io/two", "a.io/three")
AMOUNTS = st.dictionaries(st.sampled_from(("cpu", *NAMES)), st.integers(1, 5), max_size=4).map(
    lambda amounts: tuple(sorted(amounts.items()))
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("hold"), st.integers(0, 2), AMOUNTS, st.booleans()),
        st.tuples(st.just("release"), st.integers(0, 99)),
        st.tuples(st.just("wait"), st.integers(0, 2), AMOUNTS),
        st.tuples(st.just("node"), st.integers(0, 2), AMOUNTS),
        st.tuples(st.just("drop"), st.integers(0, 2)),
    ),
    max_size=30,
)


class Books:
    """A cluster, and beside it one in which every resource has had its column from the beginning."""

    def __init__(self) -> None:
        self.lazy, self.wide = Cluster(rows=4), Cluster(rows=4)
        self.wide.open_columns(NAMES)
        self.held: list[tuple[int, Task]] = []
        for at in range(3):
            self.node(at, (("pods", 9),))

    @property
    def both(self) -> tuple[Cluster, Cluster]:
        return self.lazy, self.wide

    def hold(self, row: int, amounts: Amounts, is_service: bool) -> None:
        if self.lazy.names[row]:
            self.held.append((row, pod(amounts, long_running=is_service)))
            for cluster in self.both:
                cluster.hold(*self.held[-1])

    def release(self, at: int) -> None:
        if self.held:
            pair = self.held.pop(at % len(self.held))
            for cluster in self.both:
                cluster.release(*pair)

    def wait(self, row: int, amounts: Amounts) -> None:
        for cluster in self.both:
            cluster.add_tentative(row, amounts)

    def node(self, at: int, amounts: Amounts) -> None:
        rows = {cluster.set_node(Node(f"n{at}", amounts)) for cluster in self.both}
        assert len(rows) == 1

    def drop(self, at: int) -> None:
        row = self.lazy.rows.get(f"n{at}")
        for pair in [pair for pair in self.held if pair[0] == row]:
            self.held.remove(pair)
            for cluster in self.both:
                cluster.release(*pair)
        for cluster in self.both:
            cluster.drop_node(f"n{at}")

    def check(self) -> None:
        for name, column in self.lazy.columns.items():
            np.testing.assert_array_equal(
                self.lazy.layers[:, :, column], self.wide.layers[:, :, self.wide.columns[name]], err_msg=name
            )


@settings(deadline=None)
@given(STEPS)
def test_the_books_are_those_of_columns_opened_from_the_beginning(steps: list[tuple[Any, ...]]) -> None:
    books = Books()
    for kind, *arguments in steps:
        getattr(books, kind)(*arguments)
        books.check()
    for name in NAMES:  # what was kept aside comes to light
        for cluster in books.both:
            cluster.set_node(Node("last", ((name, 1),)))
        books.check()
