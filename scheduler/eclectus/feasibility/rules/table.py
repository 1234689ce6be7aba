"""The table of rules, in kube-scheduler's order: the first that refuses a node names the reason.

Static rules depend on a node's labels, taints and name, and on volumes; usage rules depend on the pods on it.
Room itself (NodeResourcesFit) is in feasibility/room.py and comes before the rules marked `after_room`, and
rules about pods elsewhere are in feasibility/topology. To add another rule, add it to nodes.py or volumes.py,
or to a file of its own, and add a line here.
"""

from eclectus.feasibility.rules import nodes, volumes
from eclectus.feasibility.rules.rule import Rule

STATIC_RULES: tuple[Rule, ...] = (
    nodes.UNSUPPORTED_FEATURES,
    volumes.BLOCKED,
    nodes.NODE_UNSCHEDULABLE,
    nodes.NODE_NAME,
    nodes.TAINT_TOLERATION,
    nodes.ENFORCED_AFFINITY,
    nodes.NODE_AFFINITY,
    nodes.SLOW_NODES,
    volumes.DRIVERS,
    volumes.BOUND,
    volumes.UNBOUND,
    volumes.STORAGE,
    volumes.VOLUME_ZONE,
    nodes.TOPOLOGY_KEYS,
)
USAGE_RULES: tuple[Rule, ...] = (
    nodes.NODE_PORTS,
    volumes.VOLUME_RESTRICTIONS,
    volumes.VOLUME_LIMITS,
    volumes.UNBOUND_NOW,
    volumes.STORAGE_NOW,
    nodes.DEVICES,
)
