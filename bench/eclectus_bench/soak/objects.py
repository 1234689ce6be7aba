"""The objects of a soak: standing pods leave 1.5 cores of each node, pending ones ask for two or more."""

from typing import Any

from eclectus_bench.load import ZONES, node_name, pod
from eclectus_bench.soak.sizes import Sizes

Object = dict[str, Any]
SCHEDULER = "eclectus"  # the chart's schedulerName
USED_MILLICORES = 2500  # by the standing pods of a node, of its 4000; a probe needs a core beside them
PENDING_MILLICORES = range(2000, 4000)  # a node has as much, so these pods wait for room
KINDS = 20  # of work: images of the pods that come and go
ZONE = "topology.kubernetes.io/zone"


def standing_on(node: int, sizes: Sizes) -> list[str]:
    """The names of the standing pods of a node."""
    return [_standing_name(index) for index in range(node, sizes.pods, sizes.nodes)]


def standing(index: int, sizes: Sizes) -> Object:
    """A pod that another scheduler has bound; those of a node use as much of it, however many they are."""
    node = index % sizes.nodes
    count = len(range(node, sizes.pods, sizes.nodes))
    return pod(
        _standing_name(index),
        "default-scheduler",
        f"{USED_MILLICORES // count}m",
        nodeName=node_name(node),
    )


def pending(index: int, sizes: Sizes) -> Object:
    """A pod that finds no room. Each shape has requests of its own, every second one also a node selector."""
    shape = index % sizes.shapes
    more, cpu = divmod(shape, len(PENDING_MILLICORES))
    found = pod(f"pending-{index:06}", SCHEDULER, f"{PENDING_MILLICORES[cpu]}m", restartPolicy="Never")
    found["spec"]["containers"][0]["resources"]["requests"]["memory"] = f"{500 + more}Mi"
    if shape % 2:
        found["spec"]["nodeSelector"] = {ZONE: ZONES[shape % len(ZONES)]}
    return found


def arriving(index: int) -> Object:
    """A pod that is bound, runs and ends."""
    found = pod(f"arriving-{index:07}", SCHEDULER, restartPolicy="Never")
    found["spec"]["containers"][0]["image"] = f"registry.example/work-{index % KINDS}:1"
    return found


def _standing_name(index: int) -> str:
    return f"standing-{index:06}"
