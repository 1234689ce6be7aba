"""One pod that names thousands of resources or labels costs a step little, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_spec, make_task
from eclectus.model.objects import Amounts, Node, Requirement, Spec, Term
from worlds import World

MANY = 3000
ODD: Amounts = tuple((f"a.io/r{at:04}", 1) for at in range(MANY))


def naming_resources() -> Spec:
    return Spec(requests=ODD)


def naming_labels(op: Any = "In") -> Spec:
    values = ("v",) if op in ("In", "NotIn") else ()
    expressions = tuple(Requirement(f"k{at:04}", op, values) for at in range(MANY))
    return make_spec(1, affinity=(Term(expressions),))


def selecting_labels() -> Spec:
    return make_spec(1, node_selector=tuple((f"k{at:04}", "v") for at in range(MANY)))


def small_world() -> World:
    return World(make_engine(), *(make_node(f"n{at}", labels={"zone": "a"}) for at in range(3)))


@pytest.mark.parametrize("spec", [naming_resources(), naming_labels(), selecting_labels()])
def test_a_pod_that_fits_nowhere_opens_no_columns_and_gets_a_reason(spec: Spec) -> None:
    world = small_world()
    columns = dict(world.engine._state.cluster.columns)
    world.add(make_task("large", spec=spec))
    cluster = world.engine._state.cluster
    assert dict(cluster.columns) == columns
    assert len(cluster.labels) <= 1
    assert world.reports[-1].message.startswith("0/3 nodes are available: 3 ")
    world.add(make_task("small"))
    assert world.node_of("small")


@pytest.mark.parametrize("op", ["NotIn", "DoesNotExist"])
def test_labels_that_no_node_carries_open_no_columns_for_a_pod_that_runs(op: str) -> None:
    world = small_world()
    world.add(make_task("large", spec=naming_labels(op)))
    assert world.node_of("large")
    assert len(world.engine._state.cluster.labels) <= 1


def offering(name: str, *more: tuple[str, int]) -> Node:
    """A node that has these resources beside its usual ones."""
    usual = make_node(name)
    return replace(usual, allocatable=tuple(sorted((*usual.allocatable, *more))))


def test_it_is_placed_when_a_node_offers_what_it_names() -> None:
    world = small_world()
    world.add(make_task("large", spec=Spec(requests=ODD[:2])))
    world.put_node(offering("half", ODD[0]))
    assert world.node_of("large") == ""
    world.put_node(offering("whole", *ODD[:2]))
    assert world.node_of("large") == "whole"


def test_what_a_foreign_pod_holds_counts_when_its_node_offers_it() -> None:
    world, spec = small_world(), Spec(requests=(("a.io/r0000", 2),))
    world.add(make_task("foreign", profile="other", node="n0", spec=spec))
    for name in ("n0", "n1"):
        world.put_node(offering(name, ("a.io/r0000", 2)))
    world.add(make_task("one", spec=spec), make_task("two", spec=spec))
    assert [world.node_of(name) for name in ("one", "two")] == ["n1", ""]
