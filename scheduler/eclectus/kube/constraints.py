"""Where a pod may and would like to run, and whom it keeps away: API fields to the core's values."""

from __future__ import annotations

from typing import Any, cast

from eclectus.kube.objects import Node, Pod, PodSpec
from eclectus.kube.placement import Expression, LabelSelector, NodeSelectorTerm, PodAffinityTerm
from eclectus.kube.requests import FieldError
from eclectus.model import objects as model
from eclectus.model.objects import AntiAffinityTerm, HostPort, Pairs, Preference, Requirement, Term

_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_TOLERATION_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def pairs(mapping: dict[str, str]) -> Pairs:
    """A mapping as the core's sorted pairs."""
    return tuple(sorted(mapping.items()))


def required_terms(spec: PodSpec) -> tuple[Term, ...] | None:
    """Required node affinity; None when nothing is required. Raises FieldError."""
    node = spec.affinity.node_affinity if spec.affinity is not None else None
    rules = node.required_during_scheduling_ignored_during_execution if node is not None else None
    return None if rules is None else tuple(_term(term) for term in rules.node_selector_terms)


def preferences(spec: PodSpec) -> tuple[Preference, ...]:
    """Preferred node affinity; lines of no weight or no content say nothing. Raises FieldError."""
    node = spec.affinity.node_affinity if spec.affinity is not None else None
    if node is None:
        return ()
    return tuple(
        Preference(line.weight, _term(line.preference))
        for line in node.preferred_during_scheduling_ignored_during_execution
        if line.weight and (line.preference.match_expressions or line.preference.match_fields)
    )


def tolerations(spec: PodSpec) -> tuple[model.Toleration, ...]:
    """Tolerations; one with an operator of another age tolerates nothing, as in kube-scheduler."""
    return tuple(
        model.Toleration(each.key, cast(Any, each.operator or "Equal"), each.value, each.effect)
        for each in spec.tolerations
        if (each.operator or "Equal") in _TOLERATION_OPERATORS
    )


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Ports taken on the node by app containers and sidecars; init containers give theirs back."""
    containers = (*spec.containers, *(init for init in spec.init_containers if init.sidecar))
    return tuple(
        HostPort(port.host_port, port.protocol or "TCP", port.host_ip or "0.0.0.0")  # noqa: S104 — as above
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )


def taints(node: Node) -> tuple[model.Taint, ...]:
    """Taints in their order, those of effects that mean nothing to a scheduler left out."""
    return tuple(
        model.Taint(each.key, each.value, cast(Any, each.effect))
        for each in node.spec.taints
        if each.effect in _EFFECTS
    )


def anti_affinity_terms(pod: Pod) -> tuple[AntiAffinityTerm, ...]:
    """What the pod's required anti-affinity keeps away from it.

    Departs from kube-scheduler to the safe side: namespaces chosen by their labels count as every
    namespace, because namespaces are not watched. A term without a selector matches no pod.
    """
    affinity = pod.spec.affinity
    rules = affinity.pod_anti_affinity if affinity is not None else None
    if rules is None:
        return ()
    return tuple(
        AntiAffinityTerm(
            term.topology_key, _selector(term.label_selector), _namespaces(term, pod.metadata.namespace)
        )
        for term in rules.required_during_scheduling_ignored_during_execution
        if term.label_selector is not None
    )


def _namespaces(term: PodAffinityTerm, own: str) -> tuple[str, ...] | None:
    if term.namespace_selector is not None:
        return None
    return tuple(sorted(term.namespaces)) or (own,)


def _selector(selector: LabelSelector) -> tuple[Requirement, ...]:
    """A label selector; an expression of an unknown operator is left out, which widens the guard."""
    return tuple(Requirement(key, "In", (value,)) for key, value in pairs(selector.match_labels)) + tuple(
        Requirement(each.key, cast(Any, each.operator), each.values)
        for each in selector.match_expressions
        if each.operator in _LABEL_OPERATORS
    )


def _term(term: NodeSelectorTerm) -> Term:
    return Term(
        tuple(_requirement(each, "matchExpressions") for each in term.match_expressions),
        tuple(_requirement(each, "matchFields") for each in term.match_fields),
    )


def _requirement(expression: Expression, field: str) -> Requirement:
    if expression.operator not in _NODE_OPERATORS:
        raise FieldError(
            f"spec.affinity.nodeAffinity {field} {expression.key}",
            f"operator {expression.operator!r} is unknown; it is one of {', '.join(_NODE_OPERATORS)}",
        )
    return Requirement(expression.key, cast(Any, expression.operator), expression.values)
