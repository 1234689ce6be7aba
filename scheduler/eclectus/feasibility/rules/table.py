"""The table of rules, in kube-scheduler's order: the first that refuses a node names the reason.

Static rules look at a node's shape and its labels; usage rules look at what is held there. Room
itself (NodeResourcesFit) is the overflow of classes.py and comes before the rules marked `after_room`.
To add a rule: a file and a line.
"""

from __future__ import annotations

from eclectus.feasibility.rules import (
    devices,
    existing_anti_affinity,
    node_affinity,
    node_name,
    node_ports,
    node_unschedulable,
    taints,
    unsupported,
)
from eclectus.feasibility.rules.rule import Rule

STATIC_RULES: tuple[Rule, ...] = (
    unsupported.RULE,
    node_unschedulable.RULE,
    node_name.RULE,
    taints.RULE,
    node_affinity.RULE,
)
USAGE_RULES: tuple[Rule, ...] = (node_ports.RULE, existing_anti_affinity.RULE, devices.RULE)
