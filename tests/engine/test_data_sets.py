"""Data sets that pods name without nodes: on the nodes that carry a label."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from calls import calls_of
from eclectus.engine.pod_specs.data_sets import NODES_MOST, PODS_MOST
from eclectus.model.events import NodeGone, NodeSeen
from eclectus.model.objects import Input, Node, Task
from eclectus.policies.rosella import Rosella
from worlds import World

LABEL = "fluid.io/s-default-hbase"


def node(name: str, *, has_data: bool | None = None, cpu: float = 1) -> Node:
    labels = {} if has_data is None else {LABEL: str(has_data).lower()}
    return make_node(name, cpu=cpu, labels=labels)


def reader(name: str, **fields: object) -> Task:
    return make_task(name, inputs=(Input("hbase", 10**9, node_label=LABEL),), **fields)


def full(name: str) -> Task:
    return make_task(f"on-{name}", node=name, phase="Running", profile="other")


def world(*nodes: Node) -> World:
    return World(make_engine(Rosella(theta=1), ExactSpeeds({})), *nodes)


def nodes_of(made: World, name: str) -> tuple[str, ...]:
    return made.engine._state.pending[made.tasks[name].uid].inputs[0].nodes


def test_a_pod_takes_a_node_that_carries_the_label() -> None:
    made = world(node("n0"), node("n1", has_data=False), node("n2", has_data=True), node("n3"))
    made.add(reader("a"))
    assert made.node_of("a") == "n2"


def test_pods_that_wait_follow_the_labels_of_nodes() -> None:
    made = world(node("n0"), node("n1", has_data=True), node("n2"))
    made.add(*map(full, ("n0", "n1", "n2")))
    made.add(reader("a"))
    assert nodes_of(made, "a") == ("n1",)
    made.step(NodeSeen(node("n2", has_data=True)))
    assert nodes_of(made, "a") == ("n1", "n2")
    made.step(NodeSeen(node("n1", has_data=False)))
    assert nodes_of(made, "a") == ("n2",)
    made.step(NodeGone("n2"))
    assert nodes_of(made, "a") == ()


def test_a_run_that_has_ended_says_whether_it_was_at_the_data_set() -> None:
    made = world(node("n0"), node("n1", has_data=True))
    for name in ("n0", "n1"):
        made.add(reader(f"on-{name}", node=name, phase="Running"))
        made.step(after=1.0)
        made.end(f"on-{name}", 10.0)
    gain = made.engine._state.held.gains.of("default", make_task().workload)
    assert gain is not None
    assert (gain.near.samples, gain.far.samples) == (1, 1)


def test_of_a_data_set_on_many_nodes_the_first_count() -> None:
    made = world(*(node(f"n{at:03}", has_data=True, cpu=1) for at in range(NODES_MOST + 5)))
    made.add(*(full(f"n{at:03}") for at in range(NODES_MOST + 5)))
    made.add(reader("a"))
    assert nodes_of(made, "a") == tuple(f"n{at:03}" for at in range(NODES_MOST))


def test_many_pods_of_a_data_set_are_one_class_share_its_nodes_and_follow_in_slices() -> None:
    made = world(node("n0"), node("n1", has_data=True))
    made.add(full("n0"), full("n1"))
    made.add(*(reader(f"t{at}") for at in range(2 * PODS_MOST + 1)))
    assert len(made.engine._state.class_queues._classes) == 1
    assert len({id(nodes_of(made, f"t{at}")) for at in range(100)}) == 1
    followed = []
    made.step(NodeSeen(node("n0", has_data=True)))
    for _ in range(3):
        followed.append(sum(len(nodes_of(made, name)) == 2 for name in made.tasks if name.startswith("t")))
        made.step()
    assert followed == [PODS_MOST, 2 * PODS_MOST, 2 * PODS_MOST + 1]


def test_pods_that_wait_no_more_are_forgotten() -> None:
    made = world(node("n0"), node("n1", has_data=True))
    made.add(full("n0"), full("n1"))
    made.add(reader("a"), reader("b"))
    made.delete("a")
    made.delete("on-n1")
    assert made.node_of("b") == "n1"
    made.step()
    sets = made.engine._state.data_sets
    assert (sets.pods, sets._users, sets._nodes, sets.changed) == ({}, {}, {}, {})


@pytest.mark.parametrize("waiting", [0, 500])
def test_labels_that_no_pod_names_cost_nothing(waiting: int) -> None:
    made = world(node("n0"), node("n1"))
    made.add(full("n0"), full("n1"))
    made.add(*(reader(f"t{at}") for at in range(waiting)))
    made.step()
    sets = made.engine._state.data_sets
    cost = calls_of(lambda: sets.relabel((("a", "b"),), (("a", "c"),)))
    assert not sets.changed
    assert cost < 20
