"""Of which nodes the pods count for topology spread, and what of a spec the rules about other pods read.

The nodes that have all topology keys of the pod's constraints and, by a constraint's nodeAffinityPolicy and
nodeTaintsPolicy, match the pod's node selector and node affinity and have only taints that it tolerates. For
kube-scheduler's default constraints the key of the constraint itself suffices.
"""

from __future__ import annotations

from msgspec.structs import replace

from eclectus.feasibility.rules import node_affinity, taints, topology_keys
from eclectus.feasibility.rules.rule import Rule
from eclectus.model.objects import Spec, SpreadConstraint


def topology_part(spec: Spec) -> Spec:
    """A spec that is equal for pods that the rules about other pods cannot tell apart."""
    part = Spec(
        matched_terms=spec.matched_terms,
        spread=spec.spread,
        affinity_terms=spec.affinity_terms,
        matches_itself=spec.matches_itself,
        own_anti_affinity=spec.own_anti_affinity,
    )
    if any(each.honors_affinity for each in spec.spread):
        part = replace(part, node_selector=spec.node_selector, affinity=spec.affinity)
    if any(each.honors_taints for each in spec.spread):
        part = replace(part, tolerations=spec.tolerations)
    return part


def preferences_part(spec: Spec) -> Spec:
    """A spec that is equal for pods to which pods elsewhere make the same nodes preferable.

    Its `spread` are the constraints with ScheduleAnyway, for `eligible_nodes`.
    """
    read = Spec(
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        tolerations=spec.tolerations,
        spread=spec.preferred_spread,
    )
    return replace(
        topology_part(read),
        preferred_terms=spec.preferred_terms,
        matched_preferences=spec.matched_preferences,
    )


def eligible_nodes(spec: Spec, constraint: SpreadConstraint) -> tuple[Spec, tuple[Rule, ...]]:
    """The rules that decide whether the pods of a node count, and what these rules read of the spec."""
    part, rules = Spec(), list[Rule]()
    if constraint.needs_all_keys:
        keys = tuple(dict.fromkeys(each.topology_key for each in spec.spread))
        part, rules = Spec(topology_keys=keys), [topology_keys.RULE]
    if constraint.honors_affinity:
        part = replace(part, node_selector=spec.node_selector, affinity=spec.affinity)
        rules.append(node_affinity.RULE)
    if constraint.honors_taints:
        part = replace(part, tolerations=spec.tolerations)
        rules.append(taints.RULE)
    return part, tuple(rules)
