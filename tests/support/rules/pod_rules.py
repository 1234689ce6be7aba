"""The rules about other pods for one pod and one node, by going through all pods.

Written from the fields' descriptions in the API and from kube-scheduler's documentation. A nominated pod has
no `node`: anti-affinity counts it, the other rules do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import dumb_rules
from eclectus.model.objects import (
    Node,
    PodAffinityTerm,
    Requirement,
    Spec,
    SpreadConstraint,
    Task,
)

MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"
SKEW = "node(s) didn't match pod topology spread constraints"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

Placed = Sequence[tuple[Node, Task]]
"""Pods and the nodes that they are on, or that they are nominated to."""


def selected(selector: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    for each in selector:
        value = labels.get(each.key)
        holds = {
            "In": value in each.values,
            "NotIn": value not in each.values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[each.op]
        if not holds:
            return False
    return True


def matches(term: PodAffinityTerm, task: Task) -> bool:
    in_namespaces = term.namespaces is None or task.namespace in term.namespaces
    return in_namespaces and selected(term.selector, dict(task.labels))


def refusal(spec: Spec, task: Task, node: Node, nodes: Sequence[Node], placed: Placed) -> str:
    """Why the pod may not be on this node because of other pods; empty if it may."""
    for constraint in spec.spread:
        if why := _spread(spec, constraint, node, nodes, placed):
            return why
    labels = dict(node.labels)
    if not _affinity(spec, task, labels, placed):
        return AFFINITY
    others = [(dict(where.labels), pod) for where, pod in placed]
    for term in spec.own_anti_affinity:
        if any(together(term, labels, where) and matches(term, pod) for where, pod in others):
            return ANTI_AFFINITY
    for where, pod in others:
        if any(together(term, labels, where) and matches(term, task) for term in pod.anti_affinity_terms):
            return EXISTING
    return ""


def together(term: PodAffinityTerm, one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    key = term.topology_key
    return key in one and one[key] == other.get(key)


def _spread(
    spec: Spec, constraint: SpreadConstraint, node: Node, nodes: Sequence[Node], placed: Placed
) -> str:
    key, labels = constraint.topology_key, dict(node.labels)
    if key not in labels:
        return MISSING
    counts: dict[str, int] = {}
    for each in nodes:
        if _is_eligible(spec, constraint, each):
            value = dict(each.labels)[key]
            counts[value] = counts.get(value, 0) + sum(
                _counts(constraint, pod) for where, pod in placed if where.name == each.name
            )
    least = min(counts.values()) if counts and len(counts) >= constraint.min_domains else 0
    skew = counts.get(labels[key], 0) + (1 if constraint.counts_itself else 0) - least
    return SKEW if skew > constraint.max_skew else ""


def _counts(constraint: SpreadConstraint, pod: Task) -> int:
    if not constraint.selector or pod.deleting or not pod.node or pod.namespace != constraint.namespace:
        return 0
    return int(selected(constraint.selector, dict(pod.labels)))


def _is_eligible(spec: Spec, constraint: SpreadConstraint, node: Node) -> bool:
    labels = dict(node.labels)
    return all(each.topology_key in labels for each in spec.spread) and is_included(spec, constraint, node)


def is_included(spec: Spec, constraint: SpreadConstraint, node: Node) -> bool:
    """Whether the pods of a node count, by nodeAffinityPolicy and nodeTaintsPolicy."""
    may_run_by_labels = not constraint.honors_affinity or dumb_rules.affinity_true(spec, node)
    return may_run_by_labels and (not constraint.honors_taints or dumb_rules.taints_true(spec, node))


def _affinity(spec: Spec, task: Task, labels: Mapping[str, str], placed: Placed) -> bool:
    terms = spec.affinity_terms
    if any(term.topology_key not in labels for term in terms):
        return False
    counted = [
        dict(where.labels) for where, pod in placed if pod.node and all(matches(term, pod) for term in terms)
    ]
    if all(any(together(term, labels, where) for where in counted) for term in terms):
        return True
    is_first = not any(term.topology_key in where for where in counted for term in terms)
    return is_first and all(matches(term, task) for term in terms)
