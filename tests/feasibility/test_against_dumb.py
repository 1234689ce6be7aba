"""Each vectorised rule against a reference for one node, written from the words of the documentation.

The reference has no label codes, taint sets or overflow. It follows Kubernetes' pages on assigning pods to
nodes and on taints and tolerations, and the field descriptions of the API.
"""

from __future__ import annotations

import string

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules import (
    enforced_affinity,
    node_affinity,
    node_name,
    node_ports,
    node_unschedulable,
    taints,
)
from eclectus.feasibility.rules.rule import Rule
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import (
    HostPort,
    Node,
    Preference,
    Requirement,
    Spec,
    Taint,
    Task,
    Term,
    Toleration,
)

# -- reference ------------------------------------------------------------------------------------


def number(text: str) -> int | None:
    """A 64-bit integer as Go's ParseInt reads it."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits or any(letter not in string.digits for letter in digits):
        return None
    value = int(digits) * (-1 if text[0] == "-" else 1)
    return value if -(2**63) <= value < 2**63 else None


def label_holds(requirement: Requirement, labels: dict[str, str]) -> bool:
    there = requirement.key in labels
    if requirement.op in ("Exists", "DoesNotExist"):
        return there is (requirement.op == "Exists")
    if requirement.op in ("In", "NotIn"):
        return (there and labels[requirement.key] in requirement.values) is (requirement.op == "In")
    mine = number(labels[requirement.key]) if there else None
    bound = number(requirement.values[0]) if len(requirement.values) == 1 else None
    if mine is None or bound is None:
        return False
    return mine > bound if requirement.op == "Gt" else mine < bound


def field_holds(requirement: Requirement, node: Node) -> bool:
    if requirement.key != "metadata.name" or len(requirement.values) != 1:
        return False
    return {"In": node.name == requirement.values[0], "NotIn": node.name != requirement.values[0]}.get(
        requirement.op, False
    )


def term_true(term: Term, node: Node) -> bool:
    if not term.expressions and not term.fields:
        return False
    labels = dict(node.labels)
    return all(label_holds(each, labels) for each in term.expressions) and all(
        field_holds(each, node) for each in term.fields
    )


def affinity_true(spec: Spec, node: Node) -> bool:
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in spec.node_selector):
        return False
    return spec.affinity is None or any(term_true(term, node) for term in spec.affinity)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.op == "Exists":
        return True
    if toleration.op == "Equal":
        return toleration.value == taint.value
    pair = []
    for text in (taint.value, toleration.value):
        value = number(text)
        if value is None or str(value) != text:
            return False
        pair.append(value)
    return pair[0] < pair[1] if toleration.op == "Lt" else pair[0] > pair[1]


def taints_true(spec: Spec, node: Node) -> bool:
    for taint in node.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not any(
            tolerates(t, taint) for t in spec.tolerations
        ):
            return False
    return True


def cordon_true(spec: Spec, node: Node) -> bool:
    cordon = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    return not node.unschedulable or any(tolerates(t, cordon) for t in spec.tolerations)


def ports_true(spec: Spec, held: list[HostPort]) -> bool:
    for want in spec.host_ports:
        for have in held:
            same = (want.port, want.protocol) == (have.port, have.protocol)
            if same and (want.ip == have.ip or "0.0.0.0" in (want.ip, have.ip)):  # noqa: S104 — as the API spells it
                return False
    return True


def preference_score_of(spec: Spec, node: Node) -> float:
    not_tolerated = sum(
        1
        for taint in node.taints
        if taint.effect == "PreferNoSchedule" and not any(tolerates(t, taint) for t in spec.tolerations)
    )
    taint_part = 1 / (1 + not_tolerated)
    total = sum(each.weight for each in spec.preferences)
    if not total:
        return taint_part
    met = sum(each.weight for each in spec.preferences if term_true(each.term, node))
    return (3 * taint_part + 2 * met / total) / 5


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
    got = answers(node_affinity.RULE, build(world), spec, world)
    assert got == [affinity_true(spec, node) for node in world]
    got = answers(enforced_affinity.RULE, build(world), spec, world)
    of_profile = Spec(affinity=spec.enforced_affinity)
    assert got == [affinity_true(of_profile, node) for node in world]


@given(nodes(), SPECS)
def test_taints(world: list[Node], spec: Spec) -> None:
    assert answers(taints.RULE, build(world), spec, world) == [taints_true(spec, node) for node in world]


@given(nodes(), SPECS)
def test_cordons(world: list[Node], spec: Spec) -> None:
    assert answers(node_unschedulable.RULE, build(world), spec, world) == [
        cordon_true(spec, node) for node in world
    ]


@given(nodes(), SPECS)
def test_names(world: list[Node], spec: Spec) -> None:
    want = [spec.node_name in ("", node.name) for node in world]
    assert answers(node_name.RULE, build(world), spec, world) == want


@given(nodes(), SPECS, st.lists(st.tuples(st.integers(0, 3), PORTS), max_size=5))
def test_ports(world: list[Node], spec: Spec, pods: list[tuple[int, HostPort]]) -> None:
    cluster = build(world)
    held: list[list[HostPort]] = [[] for _ in world]
    for at, port in pods:
        held[at % len(world)].append(port)
        cluster.hold(
            cluster.rows[world[at % len(world)].name], Task("u", "n", "p", spec=Spec(host_ports=(port,)))
        )
    assert answers(node_ports.RULE, cluster, spec, world) == [ports_true(spec, each) for each in held]


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
