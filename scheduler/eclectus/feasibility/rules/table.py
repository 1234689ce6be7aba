"""The table of rules, in kube-scheduler's order: the first that refuses a node names the reason.

Static rules depend on a node's labels, taints and name, and on volumes; usage rules depend on the pods on it.
Room itself (NodeResourcesFit) is in feasibility/room.py and comes before the rules marked `after_room`, and
rules about pods elsewhere are in feasibility/topology. To add another rule, add a file with a `RULE` and a
line here.
"""

from __future__ import annotations

from eclectus.feasibility.rules import (
    devices,
    enforced_affinity,
    node_affinity,
    node_name,
    node_ports,
    node_unschedulable,
    taints,
    topology_keys,
    unsupported,
    volume_binding,
    volume_limits,
    volume_restrictions,
    volume_zone,
)
from eclectus.feasibility.rules.rule import Rule

STATIC_RULES: tuple[Rule, ...] = (
    unsupported.RULE,
    volume_binding.BLOCKED,
    node_unschedulable.RULE,
    node_name.RULE,
    taints.RULE,
    enforced_affinity.RULE,
    node_affinity.RULE,
    volume_binding.BOUND,
    volume_binding.UNBOUND,
    volume_binding.STORAGE,
    volume_zone.RULE,
    topology_keys.RULE,
)
USAGE_RULES: tuple[Rule, ...] = (
    node_ports.RULE,
    volume_restrictions.RULE,
    volume_limits.RULE,
    volume_binding.UNBOUND_NOW,
    volume_binding.STORAGE_NOW,
    devices.RULE,
)
