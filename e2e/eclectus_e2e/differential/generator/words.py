"""What objects of the random clusters can refer to: few words, so that they often meet.

NAMESPACES, PRIORITY_CLASSES and STORAGE_CLASSES exist in every cluster.
"""

from random import Random
from typing import Any, NamedTuple

Object = dict[str, Any]

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NAMESPACES = {
    "team-a": {"team": "a", "env": "prod"},
    "team-b": {"team": "b", "env": "prod"},
    "lab": {"team": "a", "env": "test"},
}
APPS = ("web", "db", "cache")
ZONES = ("east", "west", "north")
LABELS = {ZONE: ZONES, "disk": ("ssd", "hdd"), "cores": ("4", "16", "64"), "rack": ("r1", "r2")}
"""Labels of nodes beside their host name; `cores` is compared as a number."""
TAINTS = ("team", "dedicated", "node.kubernetes.io/unschedulable")
IMAGES = {"large:1": 4 << 30, "small:1": 90 << 20, "common:1": 700 << 20}
"""Name -> bytes."""
GPU = "example.com/gpu"
DRIVER = "csi.example.com"
DELETED = "2026-01-01T00:00:00Z"
"""deletionTimestamp of what is being deleted; when does not matter."""

PLACED, NEVER_PREEMPTS, LOW, PREEMPTS = "placed", "never-preempts", "low", "preempts"
PRIORITY_CLASSES: dict[str, Object] = {
    PLACED: {
        "value": 1000
    },  # of pods on nodes: no pod that is asked about may evict them but those that preempt
    NEVER_PREEMPTS: {"value": 2000, "preemptionPolicy": "Never"},
    LOW: {"value": -10},
    PREEMPTS: {"value": 2000},
}
LOCAL, ELSEWHERE, AT_ONCE = "local", "elsewhere", "at-once"
STORAGE_CLASSES: dict[str, Object] = {
    LOCAL: {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"},
    ELSEWHERE: {
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": ["nowhere"]}]}],
    },
    AT_ONCE: {"provisioner": DRIVER, "volumeBindingMode": "Immediate"},
}


class Names(NamedTuple):
    """What a pod may name: nodes, and the claims of its namespace."""

    nodes: tuple[str, ...]
    claims: tuple[str, ...] = ()


def chance(rng: Random, percent: float) -> bool:
    """True in so many of a hundred cases."""
    return rng.random() * 100 < percent


def some(rng: Random, of: tuple[str, ...], most: int) -> list[str]:
    """One to `most` different ones."""
    return rng.sample(of, rng.randint(1, min(most, len(of))))
