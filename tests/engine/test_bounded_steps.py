"""One pod costs work in proportion to its own size and to the nodes, never to the product of the two.

A pod may be as large as the API takes, 1.5 MB: with 20,000 tolerations, terms or ports a product with 5,000
nodes stops the scheduler for longer than its Lease lasts. Work is counted in bytecodes. A vector over nodes
is one, so some of them for each part of a pod are allowed: a hundredth of a second for a thousand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_spec, make_task
from eclectus.explain.pod import explain_pod
from eclectus.model.objects import (
    HostPort,
    PodAffinityTerm,
    Preference,
    Requirement,
    Spec,
    Taint,
    Task,
    Term,
    Toleration,
)
from operation_counts import operations
from worlds import World

SMALL = 60


def expressions(op: Any, count: int) -> tuple[Term, ...]:
    """Terms on the label by which all nodes differ, none of which holds."""
    values = {"Gt": "10000", "Lt": "-1"}
    return tuple(Term((Requirement("number", op, (values.get(op, f"x{at}"),)),)) for at in range(count))


def naming(count: int) -> Spec:
    names = [Requirement("metadata.name", "In", (f"x{at}",)) for at in range(count)]
    return make_spec(1, affinity=tuple(Term(fields=(name,)) for name in names))


def preferring(count: int) -> Spec:
    return make_spec(1, preferences=tuple(Preference(1, term) for term in expressions("Gt", count)))


def tolerating(op: Any) -> Callable[[int], Spec]:
    """Tolerations of the key that all nodes are tainted with, none of which tolerates one."""
    return lambda count: make_spec(
        1,
        tolerations=tuple(
            Toleration("time", op, f"-{at}" if op == "Lt" else f"x{at}") for at in range(count)
        ),
    )


def ports(first: int, count: int, ip: str) -> tuple[HostPort, ...]:
    return tuple(HostPort(first + at, ip=ip) for at in range(count))


LARGE: dict[str, Callable[[int], Spec]] = {
    "resources": lambda count: Spec(requests=tuple((f"a.io/r{at:05}", 1) for at in range(count))),
    "Gt": lambda count: make_spec(1, affinity=expressions("Gt", count)),
    "Lt": lambda count: make_spec(1, affinity=expressions("Lt", count)),
    "In": lambda count: make_spec(1, affinity=expressions("In", count)),
    "one In": lambda count: make_spec(
        1, affinity=(Term((Requirement("number", "In", tuple(f"x{at}" for at in range(count))),)),)
    ),
    "names": naming,
    "preferences": preferring,
    "tolerations": tolerating("Equal"),
    "tolerations of numbers": tolerating("Lt"),
    "ports": lambda count: make_spec(1, host_ports=ports(1, count, "0.0.0.0")),  # noqa: S104 — as in the API
    "ports of an address": lambda count: make_spec(1, host_ports=ports(1, count, "10.0.0.1")),
    "keys": lambda count: make_spec(1, node_selector=tuple((f"k{at:05}", "v") for at in range(count))),
}


def holder(count: int) -> Task:
    """A pod on a node with many ports on many addresses, and many terms that keep away pods of one label."""
    terms = tuple(
        PodAffinityTerm("zone", (Requirement("app", "NotIn", (f"x{at}",)),), ("default",))
        for at in range(count)
    )
    held = ports(20_000, count, "0.0.0.0") + tuple(HostPort(80, ip=f"10.0.{at}.1") for at in range(count))  # noqa: S104
    spec = make_spec(0, host_ports=held)
    return make_task("holder", spec=spec, profile="other", node="n0", anti_affinity_terms=terms)


def world_of(nodes: int, *placed: Task) -> World:
    """Nodes of two zones, each with a taint of its own and a number as a label."""
    world = World(make_engine())
    for at in range(nodes):
        labels = {"zone": "ab"[at % 2], "number": str(at)}
        world.put_node(
            make_node(f"n{at}", labels=labels, taints=(Taint("time", str(at), "PreferNoSchedule"),))
        )
    world.add(make_task("first"), *placed)
    return world


def too_large(spec: Spec) -> Spec:
    """The same, for which no node has enough cores."""
    requests = {**dict(spec.requests), "cpu": 999_000}
    return replace(spec, requests=tuple(sorted(requests.items())))


def report_on(world: World, *tasks: Task) -> None:
    """The pods come, and wait for longer than a report takes."""
    world.add(*tasks)
    world.sleep(2.0)


@pytest.mark.parametrize("kind", LARGE)
def test_the_size_of_a_pod_and_the_number_of_nodes_do_not_multiply(kind: str) -> None:
    def work(scale: int) -> int:
        world = world_of(scale * SMALL)
        task = make_task("large", spec=LARGE[kind](scale * SMALL))
        return operations(lambda: report_on(world, task))

    assert work(8) < 3 * work(4), "twice as much of both: a product would be four times as much"


@pytest.mark.parametrize("kind", LARGE)
def test_nor_do_the_sizes_of_two_pods(kind: str) -> None:
    def work(scale: int) -> int:
        world = world_of(4, holder(scale * SMALL))
        task = make_task("large", spec=LARGE[kind](scale * SMALL))
        return operations(lambda: report_on(world, task))

    assert work(8) < 3 * work(4)


@pytest.mark.parametrize("labels", [(), (("app", "web"),)], ids=["unlabelled", "kept away"])
def test_nor_do_the_anti_affinity_terms_of_a_placed_pod_and_the_nodes(
    labels: tuple[tuple[str, str], ...],
) -> None:
    def work(scale: int) -> int:
        world = world_of(scale * SMALL)
        tasks = holder(scale * SMALL), make_task("small", labels=labels)
        return operations(lambda: report_on(world, *tasks))

    assert work(8) < 3 * work(4)


@pytest.mark.parametrize("kind", LARGE)
def test_a_changed_node_costs_a_large_pod_that_waits_no_more_than_its_size(kind: str) -> None:
    def work(scale: int) -> int:
        world = world_of(scale * SMALL)
        report_on(world, make_task("large", spec=too_large(LARGE[kind](SMALL))))
        return operations(lambda: world.put_node(make_node("n1", cpu=5, labels={"zone": "c", "number": "7"})))

    assert work(8) < 1.5 * work(4), "twice as many nodes: only one has changed"


@pytest.mark.parametrize("kind", LARGE)
def test_an_explanation_of_a_large_pod_costs_its_size_and_the_nodes_and_not_their_product(kind: str) -> None:
    def work(scale: int) -> int:
        world = world_of(scale * SMALL)
        report_on(world, make_task("large", spec=too_large(LARGE[kind](scale * SMALL))))
        return operations(lambda: explain_pod(world.engine, "default", "large", world.now))

    assert work(8) < 3 * work(4)


TERMS = ["Gt", "Lt", "In", "names", "preferences"]


@pytest.mark.parametrize("kind", TERMS)
def test_a_changed_node_costs_a_pod_of_many_terms_its_own_labels_and_not_the_terms(kind: str) -> None:
    def work(terms: int) -> int:
        world = world_of(4)
        report_on(world, make_task("large", spec=too_large(LARGE[kind](terms))))
        return operations(lambda: world.put_node(make_node("n1", cpu=5, labels={"zone": "c", "number": "7"})))

    assert work(800) < 1.1 * work(100)


ABSENT: dict[str, Callable[[int], PodAffinityTerm]] = {
    "another value": lambda at: keeping_away(Requirement("app", "In", (f"x{at}",))),
    "many other values": lambda at: keeping_away(
        Requirement("app", "In", tuple(f"x{at}-{each}" for each in range(3)))
    ),
    "another key": lambda at: keeping_away(Requirement(f"k{at}", "Exists")),
    "one value of two": lambda at: keeping_away(
        Requirement("app", "In", ("web",)), Requirement("tier", "In", (f"x{at}",))
    ),
    "another namespace": lambda at: PodAffinityTerm("zone", (), (f"x{at}",)),
    "equal selectors": lambda at: PodAffinityTerm(
        f"k{at}", (Requirement("app", "NotIn", ("web",)),), ("default",)
    ),
}


def keeping_away(*selector: Requirement) -> PodAffinityTerm:
    return PodAffinityTerm("zone", selector, ("default",))


@pytest.mark.parametrize("kind", ABSENT)
def test_anti_affinity_terms_that_do_not_match_cost_an_arriving_pod_nothing(kind: str) -> None:
    def work(terms: int) -> int:
        placed = replace(holder(1), anti_affinity_terms=tuple(map(ABSENT[kind], range(terms))))
        world = world_of(4, placed)
        labels = (("app", "web"), ("tier", "front"))
        world.add(make_task("before", labels=(("app", "web"),)))
        return operations(lambda: world.add(make_task("small", labels=labels)))

    assert work(400) <= work(100) + 40, "one lookup for each label, however many terms"


@pytest.mark.parametrize("is_new", [True, False], ids=["all of a pod that comes", "one of many"])
def test_terms_that_match_waiting_pods_cost_what_has_changed(is_new: bool) -> None:
    """Not the product of the terms that a waiting pod is matched by and those that change."""

    def work(scale: int) -> int:
        world = world_of(4)
        world.add(make_task("waiting", cpu=999, labels=(("app", "web"),)))
        many = holder(scale * SMALL)
        one = replace(holder(1), name="one", uid="uid-one", anti_affinity_terms=(keeping_away(),))
        if not is_new:
            world.add(many)
        return operations(lambda: world.add(many if is_new else one))

    assert work(8) < 3 * work(4)
