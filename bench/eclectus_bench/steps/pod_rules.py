"""Pods with rules about other pods, on a cluster where such pods run already; each is bound in two steps.

`plain` has no rule. `kept away` matches the anti-affinity of a pod that is on four nodes of five, and has
none of its own; `apart` has the same anti-affinity, by node. `spread` and `near` have rules by zone. The
others have preferences: `prefers apart` by node, from those pods and its own kind, `prefers spread` by zone.
"""

from collections.abc import Mapping
from typing import Any

from eclectus.framework import PlacePolicy
from eclectus.model.events import TaskSeen
from eclectus.model.objects import PodAffinityTerm, Requirement, SpreadConstraint, WeightedTerm
from eclectus.policies.order.fifo import FifoOrder
from eclectus_bench.steps.driver import HOSTNAME, ZONE, Driver, make_node, make_spec, make_task, running

WEB, DB = (("app", "web"), ("tier", "back")), (("app", "db"), ("tier", "back"))
OF_WEB, OF_DB = (Requirement("app", "In", ("web",)),), (Requirement("app", "In", ("db",)),)
OF_BACK = (Requirement("tier", "In", ("back",)),)
APART = PodAffinityTerm(HOSTNAME, OF_WEB, ("bench",))
RULES: Mapping[str, tuple[Any, dict[str, Any]]] = {  # labels, fields of the spec
    "plain": ((), {}),
    "kept away": (WEB, {}),
    "apart": (WEB, {"own_anti_affinity": (APART,)}),
    "spread": (
        DB,
        {"topology_keys": (ZONE,), "spread": (SpreadConstraint(ZONE, "bench", OF_DB, counts_itself=True),)},
    ),
    "near": (
        DB,
        {"topology_keys": (ZONE,), "affinity_terms": (PodAffinityTerm(ZONE, OF_WEB, ("bench",)),)},
    ),
    "prefers apart": (
        DB,
        {"preferred_terms": (WeightedTerm(-100, PodAffinityTerm(HOSTNAME, OF_BACK, ("bench",))),)},
    ),
    "prefers spread": (
        DB,
        {"preferred_spread": (SpreadConstraint(ZONE, "bench", OF_DB, counts_itself=True),)},
    ),
}
PREFERENCES = ("plain", "prefers apart", "prefers spread")


def driver_with_placed(count: int, place: PlacePolicy | None = None) -> Driver:
    """So many nodes, and on four of five of them a pod that wants to be alone. `place`: rosella if None."""
    nodes = [make_node(at) for at in range(count)]
    driver = Driver(FifoOrder(), nodes, place=place)
    placed = [
        TaskSeen(running(f"placed-{at}", node, labels=WEB, anti_affinity_terms=(APART,)))
        for at, node in enumerate(nodes)
        if at % 5
    ]
    driver.step(*placed)
    return driver


def arrives(kind: str, number: int) -> TaskSeen:
    """One more pod of a kind."""
    labels, fields = RULES[kind]
    terms = fields.get("own_anti_affinity", ())
    task = make_task(f"{kind}-{number}", make_spec(**fields), labels=labels, anti_affinity_terms=terms)
    return TaskSeen(task)
