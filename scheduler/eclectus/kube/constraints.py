"""Scheduling constraints of a pod and taints of a node, from the API's form to the model's.

Topology spread and inter-pod affinity depend, unlike the rest of a Spec, on the pod's namespace and labels
too: whether a pod counts for its own constraint, for example. Pods of one template agree in this, so they
share a class all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from eclectus.kube import placement
from eclectus.kube.objects import Node, Pod, PodSpec
from eclectus.kube.placement import Expression, LabelSelector, NodeSelector, NodeSelectorTerm
from eclectus.kube.requests import FieldError
from eclectus.kube.unsupported import MAX_NAMESPACE_SELECTORS, MAX_POD_RULES
from eclectus.model import objects as model
from eclectus.model.objects import (
    HostPort,
    Pairs,
    PodAffinityTerm,
    Preference,
    Requirement,
    Spec,
    SpreadConstraint,
    Term,
    WeightedTerm,
)
from eclectus.model.selectors import selects

_NODE_AFFINITY = "spec.affinity.nodeAffinity"
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_TOLERATION_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def pairs(mapping: dict[str, str]) -> Pairs:
    """A mapping as sorted pairs."""
    return tuple(sorted(mapping.items()))


def required_terms(spec: PodSpec) -> tuple[Term, ...] | None:
    """Required node affinity; None if there is none. Raises FieldError."""
    node = spec.affinity.node_affinity if spec.affinity is not None else None
    rules = node.required_during_scheduling_ignored_during_execution if node is not None else None
    return None if rules is None else terms(rules, _NODE_AFFINITY)


def terms(selector: NodeSelector, field: str) -> tuple[Term, ...]:
    """The terms of a node selector; `field` has it, for errors. Raises FieldError."""
    return tuple(_term(term, field) for term in selector.node_selector_terms)


def preferences(spec: PodSpec) -> tuple[Preference, ...]:
    """Preferred node affinity, without terms that have no weight or no content. Raises FieldError."""
    node = spec.affinity.node_affinity if spec.affinity is not None else None
    if node is None:
        return ()
    return tuple(
        Preference(each.weight, _term(each.preference, _NODE_AFFINITY))
        for each in node.preferred_during_scheduling_ignored_during_execution
        if each.weight and (each.preference.match_expressions or each.preference.match_fields)
    )


def tolerations(spec: PodSpec) -> tuple[model.Toleration, ...]:
    """Tolerations. One with an unknown operator tolerates nothing, as in kube-scheduler."""
    return tuple(
        model.Toleration(each.key, cast(Any, each.operator or "Equal"), each.value, each.effect)
        for each in spec.tolerations
        if (each.operator or "Equal") in _TOLERATION_OPERATORS
    )


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Host ports of app containers and sidecars. Those of init containers are free again after the start."""
    containers = (*spec.containers, *(init for init in spec.init_containers if init.sidecar))
    return tuple(
        HostPort(port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")  # noqa: S104 — the API's default
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )


def taints(node: Node) -> tuple[model.Taint, ...]:
    """Taints in their order, without those whose effect is unknown."""
    return tuple(
        model.Taint(each.key, each.value, cast(Any, each.effect))
        for each in node.spec.taints
        if each.effect in _EFFECTS
    )


def label_selector(selector: LabelSelector) -> tuple[Requirement, ...]:
    """A label selector. An expression with an unknown operator is left out, so that more pods match."""
    return tuple(Requirement(key, "In", (value,)) for key, value in pairs(selector.match_labels)) + tuple(
        Requirement(each.key, cast(Any, each.operator), each.values)
        for each in selector.match_expressions
        if each.operator in _LABEL_OPERATORS
    )


def _term(term: NodeSelectorTerm, field: str) -> Term:
    return Term(
        tuple(_requirement(each, f"{field} matchExpressions") for each in term.match_expressions),
        tuple(_requirement(each, f"{field} matchFields") for each in term.match_fields),
    )


def _requirement(expression: Expression, field: str) -> Requirement:
    if expression.operator not in _NODE_OPERATORS:
        raise FieldError(
            f"{field} {expression.key}",
            f"operator {expression.operator!r} is unknown; it must be one of {', '.join(_NODE_OPERATORS)}",
        )
    return Requirement(expression.key, cast(Any, expression.operator), expression.values)


_T = TypeVar("_T")
_NO_POD = (Requirement("", "In", ()),)


def with_pod_rules(spec: Spec, pod: Pod) -> Spec:
    """The Spec of the pod with its rules about other pods; the same for nearly all pods, which have none."""
    affinity = pod.spec.affinity
    if affinity is None and not pod.spec.topology_spread_constraints:
        return spec
    rules, spread_preferred = spread(pod)
    near = () if affinity is None else _terms(affinity.pod_affinity, pod)
    apart = () if affinity is None else _terms(affinity.pod_anti_affinity, pod)
    apart = tuple(term for term in apart if term.selector is not _NO_POD)  # it keeps nobody away
    keys = (*(each.topology_key for each in rules), *(term.topology_key for term in near))
    return replace(
        spec,
        topology_keys=tuple(dict.fromkeys(keys)),
        spread=rules,
        affinity_terms=near,
        matches_itself=bool(near) and all(_matches(term, pod) for term in near),
        own_anti_affinity=apart,
        preferred_spread=spread_preferred[:MAX_POD_RULES],
        preferred_terms=() if affinity is None else _preferred(affinity, pod),
    )


def spread(pod: Pod) -> tuple[tuple[SpreadConstraint, ...], tuple[SpreadConstraint, ...]]:
    """The topology spread constraints with DoNotSchedule, and those with ScheduleAnyway.

    The values of matchLabelKeys are part of the selector; API servers since 1.34 have written them into it.
    """
    hard, preferred = list[SpreadConstraint](), list[SpreadConstraint]()
    for each in pod.spec.topology_spread_constraints:
        found = preferred if each.when_unsatisfiable == "ScheduleAnyway" else hard
        found.append(_constraint(each, pod))
    return tuple(hard), tuple(preferred)


def _preferred(affinity: placement.Affinity, pod: Pod) -> tuple[WeightedTerm, ...]:
    """Preferred pod affinity and, with weights below 0, anti-affinity: the `MAX_POD_RULES` heaviest terms.

    Left out are those that match no pod.
    """
    found = [
        WeightedTerm(sign * each.weight, _pod_term(each.pod_affinity_term, pod))
        for sign, part in ((1, affinity.pod_affinity), (-1, affinity.pod_anti_affinity))
        for each in _weighted(part)
        if each.pod_affinity_term.label_selector is not None
    ]
    heaviest = sorted(found, key=lambda each: -abs(each.weight))
    return _counted(heaviest, lambda each: each.term)


def _counted(terms: Iterable[_T], term_of: Callable[[_T], PodAffinityTerm]) -> tuple[_T, ...]:
    """The first terms, as many as count of one pod.

    A pod that waits with more required ones is refused (unsupported.py). One on a node, which another
    scheduler has placed there, could else make each pod that comes be compared with thousands.
    """
    found, selectors = list[_T](), 0
    for term in terms:
        selectors += term_of(term).namespace_selector is not None
        if term_of(term).namespace_selector is None or selectors <= MAX_NAMESPACE_SELECTORS:
            found.append(term)
    return tuple(found[:MAX_POD_RULES])


def _weighted(part: placement.PodAffinity | None) -> Iterator[placement.WeightedPodAffinityTerm]:
    if part is not None:
        yield from part.preferred_during_scheduling_ignored_during_execution


def _terms(affinity: placement.PodAffinity | None, pod: Pod) -> tuple[PodAffinityTerm, ...]:
    """The required terms that count. One without a label selector matches no pod."""
    if affinity is None:
        return ()
    terms = affinity.required_during_scheduling_ignored_during_execution
    return _counted((_pod_term(term, pod) for term in terms), lambda term: term)


def _pod_term(term: placement.PodAffinityTerm, pod: Pod) -> PodAffinityTerm:
    return PodAffinityTerm(
        term.topology_key,
        _NO_POD if term.label_selector is None else label_selector(term.label_selector),
        *_namespaces(term, pod.metadata.namespace),
    )


def _namespaces(
    term: placement.PodAffinityTerm, own: str
) -> tuple[tuple[str, ...] | None, tuple[Requirement, ...] | None]:
    """The listed namespaces, None for all, and the selector of others, None without."""
    listed, selector = tuple(sorted(term.namespaces)), term.namespace_selector
    if selector is None:
        return listed or (own,), None
    requirements = label_selector(selector)
    return (listed, requirements) if requirements else (None, None)


def _matches(term: PodAffinityTerm, pod: Pod) -> bool:
    return term.covers(pod.metadata.namespace) and selects(term.selector, pod.metadata.labels)


def _constraint(each: placement.SpreadConstraint, pod: Pod) -> SpreadConstraint:
    labels, selector = pod.metadata.labels, None
    if each.label_selector is not None:
        stated = label_selector(each.label_selector)
        merged = (Requirement(key, "In", (labels[key],)) for key in each.match_label_keys if key in labels)
        selector = tuple(dict.fromkeys((*stated, *merged)))
    return SpreadConstraint(
        each.topology_key,
        pod.metadata.namespace,
        selector,
        selector is not None and selects(selector, labels),
        each.max_skew,
        each.min_domains or 1,
        each.node_affinity_policy != "Ignore",
        each.node_taints_policy == "Honor",
    )
