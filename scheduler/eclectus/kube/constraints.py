"""Scheduling constraints of a pod and taints of a node, from the API's form to the model's."""

from __future__ import annotations

from typing import Any, cast

from eclectus.kube.objects import Node, PodSpec
from eclectus.kube.placement import Expression, LabelSelector, NodeSelector, NodeSelectorTerm
from eclectus.kube.requests import FieldError
from eclectus.model import objects as model
from eclectus.model.objects import HostPort, Pairs, Preference, Requirement, Term

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
