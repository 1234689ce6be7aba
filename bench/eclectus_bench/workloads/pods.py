"""The pods of each workload: what those of scheduler_perf, kube-scheduler's own benchmark, ask for.

All of them request what its pod-default does. Their terms and constraints count the pods with the label that
every pod here has.
"""

from collections.abc import Sequence
from typing import Any

from eclectus_bench.load import Object, pod

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
EVERY_POD = {"matchLabels": {"app": "bench"}}  # of the namespaces of the workload
ZONE_SKEW, HOSTNAME_SKEW = 5, 1
TOO_LARGE_CPU = "9"  # of nodes with 4


def basic(name: str, scheduler: str, namespaces: Sequence[str]) -> Object:
    """A pod without rules."""
    return pod(name, scheduler)


def spread_by_zone(name: str, scheduler: str, namespaces: Sequence[str]) -> Object:
    """Topology spread over zones, DoNotSchedule."""
    return _with(pod(name, scheduler), topologySpreadConstraints=[_spread(ZONE, ZONE_SKEW)])


def spread_by_zone_and_node(name: str, scheduler: str, namespaces: Sequence[str]) -> Object:
    """The same, and over nodes too."""
    constraints = [_spread(ZONE, ZONE_SKEW), _spread(HOSTNAME, HOSTNAME_SKEW)]
    return _with(pod(name, scheduler), topologySpreadConstraints=constraints)


def near(name: str, scheduler: str, namespaces: Sequence[str]) -> Object:
    """Required pod affinity by zone."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(ZONE, namespaces)]}
    return _with(pod(name, scheduler), affinity={"podAffinity": required})


def apart(name: str, scheduler: str, namespaces: Sequence[str]) -> Object:
    """Required pod anti-affinity by node."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(HOSTNAME, namespaces)]}
    return _with(pod(name, scheduler), affinity={"podAntiAffinity": required})


def rather_apart(name: str, scheduler: str, namespaces: Sequence[str]) -> Object:
    """Preferred pod anti-affinity by node."""
    weighted = {"weight": 1, "podAffinityTerm": _term(HOSTNAME, namespaces)}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
    return _with(pod(name, scheduler), affinity={"podAntiAffinity": preferred})


def with_volume(name: str, scheduler: str, namespaces: Sequence[str]) -> Object:
    """A pod with the volume of the PersistentVolumeClaim that has its name."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
    return _with(pod(name, scheduler), volumes=[volume])


def too_large(name: str, scheduler: str, **spec: Any) -> Object:
    """A pod for which no node is large enough."""
    return _with(pod(name, scheduler, TOO_LARGE_CPU), **spec)


def gated(name: str, scheduler: str) -> Object:
    """A pod with a scheduling gate."""
    return _with(pod(name, scheduler), schedulingGates=[{"name": "bench.example/closed"}])


def _with(found: Object, **spec: Any) -> Object:
    found["spec"].update(spec)
    return found


def _spread(key: str, skew: int) -> Object:
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": EVERY_POD,
    }


def _term(key: str, namespaces: Sequence[str]) -> Object:
    return {"topologyKey": key, "namespaces": list(namespaces), "labelSelector": EVERY_POD}
