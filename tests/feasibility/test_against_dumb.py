"""Each vectorised rule about nodes, and the message made of them, against going through the nodes."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from dumb_rules import (
    affinity_true,
    cordon_true,
    has_topology_labels,
    ports_true,
    preference_score_of,
    reaches_bound_volumes,
    refusals,
    taints_true,
)
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.fit_error import RoomWithout, fit_error, reasons_without
from eclectus.feasibility.rules import nodes as node_rules
from eclectus.feasibility.rules import volumes
from eclectus.feasibility.rules.rule import Rule
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import (
    NO_VOLUMES,
    HostPort,
    Node,
    Preference,
    Requirement,
    Spec,
    Taint,
    Task,
    Term,
    Toleration,
    VolumeNeeds,
)

# -- random clusters -------------------------------------------------------------------------------

KEYS = st.sampled_from(["zone", "nic", "kernel"])
VALUES = st.sampled_from(["", "z1", "z2", "5", "-3", "+7", "007", "1_0", "8", "9" * 19])
NAMES = ["n0", "n1", "n2", "n3"]
EFFECTS = st.sampled_from(["NoSchedule", "PreferNoSchedule", "NoExecute"])
TAINT_KEYS = st.sampled_from(["node.kubernetes.io/unschedulable", "t1", "t2"])


@st.composite
def requirements(draw: st.DrawFn) -> Requirement:
    op = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]))
    most = {"Gt": 2, "Lt": 2}.get(op, 3)
    return Requirement(draw(KEYS), op, tuple(draw(st.lists(VALUES, min_size=1, max_size=most))))


FIELD_REQUIREMENTS = st.builds(
    Requirement,
    st.sampled_from(["metadata.name", "metadata.name", "metadata.uid"]),
    st.sampled_from(["In", "NotIn", "Exists"]),
    st.lists(st.sampled_from([*NAMES, "gone"]), min_size=1, max_size=2).map(tuple),
)
TERMS = st.builds(
    Term,
    st.lists(requirements(), max_size=2).map(tuple),
    st.lists(FIELD_REQUIREMENTS, max_size=1).map(tuple),
)
TAINTS = st.builds(Taint, TAINT_KEYS, VALUES, EFFECTS)
TOLERATIONS = st.builds(
    Toleration,
    st.one_of(st.just(""), TAINT_KEYS),
    st.sampled_from(["Equal", "Exists", "Lt", "Gt"]),
    VALUES,
    st.one_of(st.just(""), EFFECTS),
)
PORTS = st.builds(
    HostPort,
    st.integers(80, 81),
    st.sampled_from(["TCP", "UDP"]),
    st.sampled_from(["0.0.0.0", "10.0.0.1", "10.0.0.2"]),  # noqa: S104 — as the API spells it
)
SPECS = st.builds(
    Spec,
    node_name=st.sampled_from(["", "", *NAMES, "gone"]),
    node_selector=st.dictionaries(KEYS, VALUES, max_size=1).map(lambda pairs: tuple(pairs.items())),
    affinity=st.one_of(st.none(), st.lists(TERMS, max_size=3).map(tuple)),
    enforced_affinity=st.one_of(st.none(), st.lists(TERMS, max_size=3).map(tuple)),
    preferences=st.lists(st.builds(Preference, st.integers(1, 100), TERMS), max_size=3).map(tuple),
    tolerations=st.lists(TOLERATIONS, max_size=3).map(tuple),
    host_ports=st.lists(PORTS, max_size=2).map(tuple),
)


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    return [
        Node(
            name,
            (("pods", 10),),
            tuple(sorted(draw(st.dictionaries(KEYS, VALUES, max_size=3)).items())),
            tuple(draw(st.lists(TAINTS, max_size=2))),
            draw(st.booleans()),
        )
        for name in NAMES[: draw(st.integers(1, len(NAMES)))]
    ]


def build(world: list[Node]) -> Cluster:
    cluster = Cluster(rows=2)
    for node in world:
        cluster.set_node(node)
    return cluster


def answers(rule: Rule, cluster: Cluster, spec: Spec, world: list[Node]) -> list[bool]:
    """The rule's answers in the order of `world`; true where the rule does not apply."""
    if not rule.applies(spec):
        return [True] * len(world)
    rows = np.array([cluster.rows[node.name] for node in world])
    return rule.holds(cluster, spec, rows).tolist()


@given(nodes(), SPECS)
def test_node_affinity(world: list[Node], spec: Spec) -> None:
    got = answers(node_rules.NODE_AFFINITY, build(world), spec, world)
    assert got == [affinity_true(spec, node) for node in world]
    got = answers(node_rules.ENFORCED_AFFINITY, build(world), spec, world)
    of_profile = Spec(affinity=spec.enforced_affinity)
    assert got == [affinity_true(of_profile, node) for node in world]


@given(nodes(), SPECS)
def test_taints(world: list[Node], spec: Spec) -> None:
    assert answers(node_rules.TAINT_TOLERATION, build(world), spec, world) == [
        taints_true(spec, node) for node in world
    ]


@given(nodes(), SPECS)
def test_cordons(world: list[Node], spec: Spec) -> None:
    assert answers(node_rules.NODE_UNSCHEDULABLE, build(world), spec, world) == [
        cordon_true(spec, node) for node in world
    ]


@given(nodes(), SPECS)
def test_names(world: list[Node], spec: Spec) -> None:
    want = [spec.node_name in ("", node.name) for node in world]
    assert answers(node_rules.NODE_NAME, build(world), spec, world) == want


@given(nodes(), SPECS, st.lists(st.tuples(st.integers(0, 3), PORTS), max_size=5))
def test_ports(world: list[Node], spec: Spec, pods: list[tuple[int, HostPort]]) -> None:
    cluster = build(world)
    held: list[list[HostPort]] = [[] for _ in world]
    for at, port in pods:
        held[at % len(world)].append(port)
        cluster.hold(
            cluster.rows[world[at % len(world)].name], Task("u", "n", "p", spec=Spec(host_ports=(port,)))
        )
    assert answers(node_rules.NODE_PORTS, cluster, spec, world) == [ports_true(spec, each) for each in held]


@given(nodes(), SPECS)
def test_preferences(world: list[Node], spec: Spec) -> None:
    cluster = build(world)
    got = TaskClass(cluster, spec, "").preference_score[[cluster.rows[node.name] for node in world]]
    np.testing.assert_allclose(got, [preference_score_of(spec, node) for node in world], rtol=1e-12)
    assert np.all((got >= 0) & (got <= 1))


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(1, 6))


@given(
    AMOUNTS,
    st.lists(AMOUNTS, max_size=4),
    AMOUNTS,
    st.integers(0, 4),
)
def test_room(room: dict[str, int], held: list[dict[str, int]], asked: dict[str, int], pods: int) -> None:
    cluster = Cluster(rows=1)
    cluster.set_node(Node("n", tuple(sorted({**room, "pods": pods}.items()))))
    for amounts in held:
        cluster.hold(0, Task("u", "n", "p", spec=Spec(requests=tuple(sorted(amounts.items())))))
    fits = len(held) + 1 <= pods and all(
        amount + sum(each.get(name, 0) for each in held) <= room.get(name, 0)
        for name, amount in asked.items()
    )
    task_class = TaskClass(cluster, Spec(requests=tuple(sorted(asked.items()))), "w")
    assert bool(task_class.fits_now[0]) is fits


@given(nodes(), st.lists(KEYS, max_size=2, unique=True).map(tuple))
def test_labels_of_topologies(world: list[Node], keys: tuple[str, ...]) -> None:
    spec = Spec(topology_keys=keys)
    want = [has_topology_labels(spec, node) for node in world]
    assert answers(node_rules.TOPOLOGY_KEYS, build(world), spec, world) == want


VOLUMES = st.lists(st.lists(TERMS, max_size=2).map(tuple), max_size=2).map(tuple)


@given(nodes(), VOLUMES)
def test_bound_volumes(world: list[Node], affinity: tuple[tuple[Term, ...], ...]) -> None:
    spec = Spec(volumes=VolumeNeeds(affinity=affinity))
    want = [reaches_bound_volumes(spec, node) for node in world]
    assert answers(volumes.BOUND, build(world), spec, world) == want


# -- the message -----------------------------------------------------------------------------------


def without_fields(terms: tuple[Term, ...] | None) -> tuple[Term, ...] | None:
    """Required terms that name nodes narrow the search in kube-scheduler, and have words of their own."""
    return None if terms is None else tuple(Term(term.expressions) for term in terms)


HELD = st.builds(
    lambda cpu, ports: Task("u", "n", "p", spec=Spec(requests=(("cpu", cpu),), host_ports=tuple(ports))),
    st.integers(1, 4),
    st.lists(PORTS, max_size=1),
)


class Filled(NamedTuple):
    """Nodes in a cluster, each with the pods on it, and the spec of a pod that is to be placed."""

    cluster: Cluster
    world: list[Node]
    held: list[list[Task]]
    spec: Spec


@st.composite
def filled(draw: st.DrawFn) -> Filled:
    sizes = st.tuples(st.integers(0, 6), st.integers(0, 3))
    world = [replace(node, allocatable=_room(*draw(sizes))) for node in draw(nodes())]
    amounts = draw(st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(1, 4)))
    spec = draw(SPECS)
    spec = replace(
        spec,
        requests=tuple(sorted(amounts.items())),
        affinity=without_fields(spec.affinity),
        volumes=VolumeNeeds(affinity=draw(VOLUMES)),
    )
    cluster, held = build(world), [list[Task]() for _ in world]
    for at, pod in enumerate(draw(st.lists(HELD, max_size=5))):
        node = draw(st.integers(0, len(world) - 1))
        held[node].append(replace(pod, uid=f"u{at}"))
        cluster.hold(cluster.rows[world[node].name], held[node][-1])
    return Filled(cluster, world, held, spec)


def _room(cpu: int, pods: int) -> tuple[tuple[str, int], ...]:
    return ("cpu", cpu), ("pods", pods)


@given(filled())
def test_the_message_counts_every_node_under_what_refuses_it_first(case: Filled) -> None:
    cluster, world, held, spec = case
    counts = Counter[str]()
    for node, there in zip(world, held, strict=True):
        counts.update(refusals(spec, node, there))
    reasons = ", ".join(sorted(f"{count} {words}" for words, count in counts.items()))
    message = fit_error(TaskClass(cluster, spec, "w"), cluster).message
    assert message == f"0/{len(world)} nodes are available:" + (f" {reasons}." if reasons else "")


@given(filled())
def test_what_refuses_a_node_without_some_of_its_pods_is_what_refuses_one_that_has_only_the_others(
    case: Filled,
) -> None:
    cluster, world, held, spec = case
    task_class = TaskClass(cluster, spec, "w")
    for node, there in zip(world, held, strict=True):
        if not refusals(replace(spec, host_ports=(), requests=(), volumes=NO_VOLUMES), node, ()):
            room = RoomWithout(task_class, cluster.rows[node.name])
            for pod in there[::2]:
                room.remove(pod)
            assert sorted(reasons_without(room)) == sorted(refusals(spec, node, there[1::2]))
