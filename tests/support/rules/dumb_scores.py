"""kube-scheduler's scores of nodes for one pod, by going through all pods and nodes one by one.

Written from the descriptions of the plugins, with Python's whole numbers. A nominated pod has no `node` and
counts nowhere here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pod_rules
from eclectus.model.objects import Node, SpreadConstraint, Task, Toleration
from pod_rules import Placed

HOSTNAME = "kubernetes.io/hostname"
WEIGHTS = {
    "taints": 3,
    "node affinity": 2,
    "spread": 2,
    "attraction": 2,
    "least allocated": 1,
    "balanced": 1,
    "images": 1,
}
MIB = 2**20


@dataclass(frozen=True)
class Asked:
    """A pod that asks, the nodes that it fits on, all nodes, and the pods on them."""

    task: Task
    fitting: Sequence[Node]
    nodes: Sequence[Node]
    placed: Placed


def totals(asked: Asked) -> dict[str, int]:
    """The sum of all scores by weight, for each node that the pod fits on."""
    each = {name: score(asked) for name, score in SCORES.items()}
    return {
        node.name: sum(WEIGHTS[name] * scores[node.name] for name, scores in each.items())
        for node in asked.fitting
    }


# -- normalising -----------------------------------------------------------------------------------


def _of_most(raw: Mapping[str, int]) -> dict[str, int]:
    most = max(raw.values())
    return {name: 100 * value // most if most else 0 for name, value in raw.items()}


def _taints(asked: Asked) -> dict[str, int]:
    def tolerated(toleration: Toleration, key: str) -> bool:
        in_effect = toleration.effect in ("", "PreferNoSchedule")
        return in_effect and toleration.op == "Exists" and toleration.key in ("", key)

    raw = {
        node.name: sum(
            taint.effect == "PreferNoSchedule"
            and not any(tolerated(each, taint.key) for each in asked.task.spec.tolerations)
            for taint in node.taints
        )
        for node in asked.fitting
    }
    return {name: 100 - score for name, score in _of_most(raw).items()}


def _node_affinity(asked: Asked) -> dict[str, int]:
    def holds(node: Node, preference: object) -> bool:
        labels = dict(node.labels)
        return pod_rules.selected(preference.term.expressions, labels)  # type: ignore[attr-defined]

    preferences = asked.task.spec.preferences
    return _of_most(
        {node.name: sum(each.weight for each in preferences if holds(node, each)) for node in asked.fitting}
    )


def attraction(task: Task, node: Node, placed: Placed) -> int:
    """InterPodAffinity's sum for one node."""
    labels, total = dict(node.labels), 0
    for where, pod in placed:
        if not pod.node:
            continue
        theirs = [(1, term) for term in pod.spec.affinity_terms]
        theirs += [(each.weight, each.term) for each in pod.spec.preferred_terms]
        for each in task.spec.preferred_terms:
            if pod_rules.matches(each.term, pod) and pod_rules.together(
                each.term, labels, dict(where.labels)
            ):
                total += each.weight
        for weight, term in theirs:
            if pod_rules.matches(term, task) and pod_rules.together(term, labels, dict(where.labels)):
                total += weight
    return total


def _attraction(asked: Asked) -> dict[str, int]:
    raw = {node.name: attraction(asked.task, node, asked.placed) for node in asked.fitting}
    least, most = min(raw.values()), max(raw.values())
    return {
        name: int(100.0 * (float(value - least) / float(most - least))) if most > least else 0
        for name, value in raw.items()
    }


# -- spread ----------------------------------------------------------------------------------------


def has_keys(task: Task, node: Node) -> bool:
    """Whether the node has the topology keys of all constraints with ScheduleAnyway that need them."""
    labels = dict(node.labels)
    return all(each.topology_key in labels for each in task.spec.preferred_spread if each.needs_all_keys)


def domain_count(
    task: Task, constraint: SpreadConstraint, node: Node, nodes: Sequence[Node], placed: Placed
) -> int:
    """The pods that a constraint counts in the domain of a node that has all keys that are needed."""
    key, names = constraint.topology_key, set()
    own = dict(node.labels).get(key)
    for other in nodes:
        if own is not None and has_keys(task, other) and dict(other.labels).get(key) == own:
            names |= {other.name} if pod_rules.is_included(task.spec, constraint, other) else set()
    return sum(_counts(constraint, pod) for where, pod in placed if where.name in names)


def crowding(task: Task, node: Node, sizes: Sequence[int], nodes: Sequence[Node], placed: Placed) -> int:
    """What is counted for a node that has all needed keys, weighed by how many domains there are."""
    total = 0.0
    for each, size in zip(task.spec.preferred_spread, sizes, strict=True):
        if each.topology_key not in dict(node.labels):
            continue
        count = domain_count(task, each, node, nodes, placed)
        total += count * math.log(size + 2) + (each.max_skew - 1)
    return math.floor(total + 0.5)


def _counts(constraint: SpreadConstraint, pod: Task) -> int:
    if not constraint.selector or pod.deleting or not pod.node or pod.namespace != constraint.namespace:
        return 0
    return int(pod_rules.selected(constraint.selector, dict(pod.labels)))


def sizes_among(task: Task, nodes: Sequence[Node]) -> list[int]:
    """For each constraint, how many domains these nodes make, those without the label being one; for host
    names, how many nodes.
    """
    return [
        len(nodes)
        if each.topology_key == HOSTNAME
        else len({dict(node.labels).get(each.topology_key) for node in nodes})
        for each in task.spec.preferred_spread
    ]


def _spread(asked: Asked) -> dict[str, int]:
    task, scores = asked.task, {node.name: 0 for node in asked.fitting}
    scored = [node for node in asked.fitting if has_keys(task, node)]
    if not task.spec.preferred_spread or not scored:
        return scores
    sizes = sizes_among(task, scored)
    raw = {node.name: crowding(task, node, sizes, asked.nodes, asked.placed) for node in scored}
    least, most = min(raw.values()), max(raw.values())
    for name, value in raw.items():
        scores[name] = 100 * (most + least - value) // most if most else 100
    return scores


# -- resources and images --------------------------------------------------------------------------


def _on(asked: Asked, node: Node) -> list[Task]:
    return [pod for where, pod in asked.placed if where.name == node.name]


def _least_allocated(asked: Asked) -> dict[str, int]:
    found = {}
    for node in asked.fitting:
        allocatable, shares = dict(node.allocatable), []
        for at, name in enumerate(("cpu", "memory")):
            if has := allocatable.get(name, 0):
                pods = [*_on(asked, node), asked.task]
                total = sum(pod.spec.score_requests[at] for pod in pods)
                shares.append(0 if total > has else (has - total) * 100 // has)
        found[node.name] = sum(shares) // len(shares) if shares else 0
    return found


def _balance(allocatable: Mapping[str, int], requested: Mapping[str, int]) -> int:
    shares = [
        min(requested[name] / allocatable[name], 1.0)
        for name in ("cpu", "memory")
        if allocatable.get(name, 0)
    ]
    deviation = abs((shares[0] - shares[1]) / 2) if len(shares) == 2 else 0.0
    return int((1 - deviation) * 100.0)


def _balanced(asked: Asked) -> dict[str, int]:
    def sums(pods: Sequence[Task]) -> dict[str, int]:
        each = [dict(pod.spec.requests) for pod in pods]
        return {name: sum(one.get(name, 0) for one in each) for name in ("cpu", "memory")}

    if not any(sums([asked.task]).values()):
        return {node.name: 0 for node in asked.fitting}
    found = {}
    for node in asked.fitting:
        allocatable, there = dict(node.allocatable), _on(asked, node)
        with_pod = _balance(allocatable, sums([*there, asked.task]))
        found[node.name] = 50 + (50 + with_pod - _balance(allocatable, sums(there))) // 2
    return found


def _images(asked: Asked) -> dict[str, int]:
    images, found = asked.task.spec.images, {}
    for node in asked.fitting:
        total = 0
        for image in images:
            holders = sum(image in dict(other.images) for other in asked.nodes)
            total += int(float(dict(node.images).get(image, 0)) * (holders / len(asked.nodes)))
        most = 1000 * MIB * max(len(images), 1)
        total = min(max(total, 23 * MIB), most)
        found[node.name] = 100 * (total - 23 * MIB) // (most - 23 * MIB)
    return found


SCORES = {
    "taints": _taints,
    "node affinity": _node_affinity,
    "spread": _spread,
    "attraction": _attraction,
    "least allocated": _least_allocated,
    "balanced": _balanced,
    "images": _images,
}
