"""The rules, and the scores of pods elsewhere and of images, that are measured. Another one is a line here.

Rules about single nodes have a change of a node, rules about pods one of a pod, rules about volumes the
arrival of a volume. Not here: rules that compare one word (a node's name, that a label is there), refusals
of what is not supported, and ReadWriteOncePod, whose pods cannot be bound while it matters.
"""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from eclectus.cluster.devices import DEVICE_MILLI
from eclectus.framework import Place
from eclectus.model.events import NodeSeen
from eclectus.model.objects import (
    HostPort,
    Node,
    PodAffinityTerm,
    Preference,
    Requirement,
    SpreadConstraint,
    Taint,
    Task,
    Term,
    WeightedTerm,
)
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.kube import KubeScores
from eclectus.policies.rosella import Rosella
from eclectus_bench.rules import storage
from eclectus_bench.rules.rule import (
    EventsOf,
    Rule,
    earlier_pod_goes,
    placed_pod_goes,
    placed_pods,
    pods_with,
)
from eclectus_bench.steps.driver import HOSTNAME, ZONE, make_node, make_spec, make_task

WEB, DB = (("app", "web"), ("tier", "back")), (("app", "db"), ("tier", "back"))
OF_WEB, OF_DB = (Requirement("app", "In", ("web",)),), (Requirement("app", "In", ("db",)),)
OF_BACK = (Requirement("tier", "In", ("back",)),)
APART = PodAffinityTerm(HOSTNAME, OF_WEB, ("bench",))
NEAR = PodAffinityTerm(ZONE, OF_WEB, ("bench",))
BY_ZONE = SpreadConstraint(ZONE, "bench", OF_DB, counts_itself=True)
BY_NODE = SpreadConstraint(HOSTNAME, "bench", OF_DB, counts_itself=True)
OF_REPLICAS = (  # kube-scheduler's default constraints
    SpreadConstraint(HOSTNAME, "bench", OF_DB, True, 3, needs_all_keys=False),
    SpreadConstraint(ZONE, "bench", OF_DB, True, 5, needs_all_keys=False),
)
RATHER_APART = WeightedTerm(-100, PodAffinityTerm(HOSTNAME, OF_BACK, ("bench",)))
RATHER_NEAR = WeightedTerm(100, NEAR)
PORT = HostPort(8080)
IMAGE = "registry.example/work:1"
SSD = Term((Requirement("disk", "In", ("ssd",)),))
ZONE_SHUTS = "a zone that is shut or opened is a third of all nodes"
ALL_SCORES = "a pod changes the scores of all nodes"
RELATIVE = "scores are relative to those of all nodes"
HOLDERS = "each node with an image counts for the scores of all that have it"

# -- nodes -----------------------------------------------------------------------------------------------


def _with_disk(number: int) -> Node:
    """Every second node has the label."""
    node = make_node(number)
    own = (("disk", "ssd"),) if number % 2 else ()
    return replace(node, labels=tuple(sorted((*node.labels, *own))))


def _tainted(number: int) -> Node:
    taints = () if number % 5 else (Taint("dedicated", "others"),)
    return replace(make_node(number), taints=taints)


def _with_image(number: int) -> Node:
    return replace(make_node(number), images=((IMAGE, 300 * 2**20),) if number % 2 else ())


def _sharing(number: int) -> Task:
    """A pod that asks for a quarter of a GPU."""
    spec = make_spec()
    return make_task(
        f"gpu-{number}", replace(spec, requests=tuple(sorted((*spec.requests, (DEVICE_MILLI, 250)))))
    )


def _with_gpus(number: int) -> Node:
    """A node with four GPUs that pods can share."""
    node = make_node(number)
    return replace(node, allocatable=tuple(sorted((*node.allocatable, (DEVICE_MILLI, 4_000)))))


def _disk_goes(number: int) -> tuple[NodeSeen]:
    return (NodeSeen(make_node(2 * number + 1)),)


def _taint_goes(number: int) -> tuple[NodeSeen]:
    return (NodeSeen(make_node(5 * number)),)


def _cordoned(number: int) -> tuple[NodeSeen]:
    return (NodeSeen(replace(make_node(number), unschedulable=True)),)


def _pulled(number: int) -> tuple[NodeSeen]:
    return (NodeSeen(replace(make_node(2 * number), images=((IMAGE, 300 * 2**20),))),)


# -- the table -------------------------------------------------------------------------------------------

THERE: EventsOf = placed_pods(WEB, terms=(APART,))
BY_NODES = (
    Rule("room alone", pods_with("plain"), there=THERE, change=placed_pod_goes),
    Rule("cordon", pods_with("cordon"), change=_cordoned),
    Rule("node affinity", pods_with("selects", affinity=(SSD,)), node=_with_disk, change=_disk_goes),
    Rule(
        "preferred node affinity",
        pods_with("prefers", preferences=(Preference(10, SSD),)),
        node=_with_disk,
        change=_disk_goes,
    ),
    Rule("taints", pods_with("taints"), node=_tainted, change=_taint_goes),
    Rule(
        "host ports",
        pods_with("port", host_ports=(PORT,)),
        there=placed_pods(ports=(PORT,)),
        change=placed_pod_goes,
    ),
    Rule("shared GPUs", _sharing, node=_with_gpus, change=earlier_pod_goes("gpu")),
)
BY_PODS = (
    Rule("anti-affinity of others, by node", pods_with("kept", WEB), there=THERE, change=placed_pod_goes),
    Rule(
        "anti-affinity, both ways, by node",
        pods_with("apart", WEB, own_anti_affinity=(APART,)),
        there=THERE,
        change=placed_pod_goes,
    ),
    Rule(
        "affinity, by zone",
        pods_with("near", DB, topology_keys=(ZONE,), affinity_terms=(NEAR,)),
        there=THERE,
        change=placed_pod_goes,
    ),
    Rule(
        "spread, by zone",
        pods_with("zones", DB, topology_keys=(ZONE,), spread=(BY_ZONE,)),
        there=THERE,
        change=earlier_pod_goes("zones"),
        grows=ZONE_SHUTS,
    ),
    Rule(
        "spread, by node",
        pods_with("nodes", DB, topology_keys=(HOSTNAME,), spread=(BY_NODE,)),
        there=THERE,
        change=earlier_pod_goes("nodes"),
    ),
)
POLICIES: tuple[tuple[str, Callable[[], Place]], ...] = (
    ("", Rosella),
    (", place: least-allocated", LeastAllocated),
    (", place: kube", KubeScores),
)
PREFERENCES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("replicas, default spread", "replicas", {"preferred_spread": OF_REPLICAS, "long_running": True}),
    ("preferred anti-affinity, by node", "rather-apart", {"preferred_terms": (RATHER_APART,)}),
    ("preferred affinity, by zone", "rather-near", {"preferred_terms": (RATHER_NEAR,)}),
    ("soft spread, by zone", "rather-zones", {"preferred_spread": (BY_ZONE,)}),
)
BY_PREFERENCES = tuple(
    Rule(
        f"{title}{policy}",
        pods_with(name, DB, **fields),
        there=THERE,
        change=placed_pod_goes,
        place=place,
        grows=RELATIVE if place is KubeScores else ALL_SCORES,
    )
    for policy, place in POLICIES
    for title, name, fields in PREFERENCES
)
BY_IMAGES = (
    Rule(
        "room alone, place: kube",
        pods_with("plain-kube"),
        there=THERE,
        change=placed_pod_goes,
        place=KubeScores,
        grows=RELATIVE,
    ),
    Rule(
        "images, place: kube",
        pods_with("image", images=(IMAGE,)),
        node=_with_image,
        place=KubeScores,
        change=_pulled,
        grows=HOLDERS,
    ),
)
RULES: tuple[Rule, ...] = (*BY_NODES, *BY_PODS, *BY_PREFERENCES, *BY_IMAGES, *storage.RULES)
