"""Kubernetes' rules about nodes for one pod and one node, written from the words of the documentation.

No label codes, taint sets or overflow: Kubernetes' pages on assigning pods to nodes and on taints and
tolerations, and the field descriptions of the API.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Sequence

from eclectus.model.objects import HostPort, Node, Requirement, Spec, Taint, Task, Term, Toleration


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


def has_topology_labels(spec: Spec, node: Node) -> bool:
    return all(key in dict(node.labels) for key in spec.topology_keys)


def reaches_bound_volumes(spec: Spec, node: Node) -> bool:
    return all(any(term_true(term, node) for term in terms) for terms in spec.volumes.affinity)


def shortages(spec: Spec, node: Node, held: Sequence[Task]) -> list[str]:
    """The resources of which the node has too little left; "pods" for the number of pods."""
    has = dict(node.allocatable)
    used = {name: sum(dict(pod.spec.requests).get(name, 0) for pod in held) for name, _ in spec.requests}
    short = [name for name, amount in spec.requests if amount and used[name] + amount > has.get(name, 0)]
    return short + (["pods"] if len(held) + 1 > has.get("pods", 0) else [])


def refusals(spec: Spec, node: Node, held: Sequence[Task]) -> Collection[str]:
    """kube-scheduler's words for a node by itself: of the first of its plugins, in order, that refuses it.

    Only NodeResourcesFit and VolumeBinding have several. Terms with matchFields are left out.
    """
    profile, ports = (
        Spec(affinity=spec.enforced_affinity),
        [one for pod in held for one in pod.spec.host_ports],
    )
    room = {"pods": "Too many pods"}
    plugins = [
        (cordon_true(spec, node), "node(s) were unschedulable"),
        (spec.node_name in ("", node.name), "node(s) didn't match the requested node name"),
        (taints_true(spec, node), "node(s) had untolerated taint(s)"),
        (affinity_true(profile, node), "node(s) didn't match scheduler-enforced node affinity"),
        (affinity_true(spec, node), "node(s) didn't match Pod's node affinity/selector"),
        (ports_true(spec, ports), "node(s) didn't have free ports for the requested pod ports"),
    ]
    for holds, words in plugins:
        if not holds:
            return [words]
    if short := shortages(spec, node, held):
        return [room.get(name, f"Insufficient {name}") for name in short]
    if not reaches_bound_volumes(spec, node):
        return ["node(s) didn't match PersistentVolume's node affinity"]
    return []
