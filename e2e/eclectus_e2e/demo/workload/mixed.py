"""A cluster in which one kind of work ranks the nodes differently: by memory bandwidth, not by clock.

Four groups of nodes with speeds 1 : 2 : 4 : 8 at computing; at `scan` the same groups are worth
8 : 4 : 2 : 1. A scheduler that learns one speed a node is wrong about one of the two; one that knows
nothing finds every node the same. Used where rates by class are what is shown.
"""

import random
from collections.abc import Sequence

from msgspec.structs import replace

from eclectus_e2e.demo.workload.arrivals import Mix, WorkClass, capacity
from eclectus_e2e.testbed.kubelet.nodes import ALLOCATABLE, NodeSpec
from eclectus_e2e.testbed.kubelet.quantities import amount

SPEEDS = (1.0, 2.0, 4.0, 8.0)
SCAN = "scan"
_HALVINGS = 40
CLASSES = (
    WorkClass("serve", 0.40, 500, 8.0, 4.0),
    WorkClass("build", 0.35, 1000, 16.0, 9.0),
    WorkClass(SCAN, 0.25, 1000, 12.0, 4.0),
)


def mixed_nodes(each: int, seed: int) -> list[NodeSpec]:
    """So many nodes of each of the four groups; neither name nor label tells which."""
    speeds = [speed for speed in SPEEDS for _ in range(each)]
    random.Random(seed).shuffle(speeds)
    return [mixed_node(f"node-{number:02d}", speed) for number, speed in enumerate(speeds, start=1)]


def mixed_node(name: str, speed: float) -> NodeSpec:
    """A node of one of the groups."""
    return NodeSpec(
        name=name,
        group=f"speed-{speed:g}",
        speed=speed,
        class_factors={SCAN: scan_factor(speed)},
        labels={"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        allocatable=dict(ALLOCATABLE),
    )


def scan_factor(speed: float) -> float:
    """What a node of this speed is better at `scan` than at computing."""
    return SPEEDS[-1] * SPEEDS[0] / speed**2


def mix(scale: float = 1.0) -> Mix:
    """Three kinds of work without constraints, all sizes times `scale`."""
    return Mix(
        [
            WorkClass(kind.name, kind.share, kind.cpu_millicores, scale * kind.work_seconds, kind.shape)
            for kind in CLASSES
        ]
    )


def best_capacity(nodes: Sequence[NodeSpec], mix: Mix) -> float:
    """Pods a second that these nodes can end when it is known who suits what (rosella.md 9.4).

    There are two kinds of nodes' talents, so the linear program is solved by comparative advantage: `scan`
    goes to those who are best at it beside computing. The most that can be done is found by halving.
    """
    low, high = 0.0, 2 * capacity([replace(node, class_factors={SCAN: SPEEDS[-1]}) for node in nodes], mix)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _can_do(middle, nodes, mix) else (low, middle)
    return low


def _can_do(per_second: float, nodes: Sequence[NodeSpec], mix: Mix) -> bool:
    scans = per_second * sum(_core_seconds(kind) for kind in mix.classes if kind.name == SCAN)
    computing = per_second * sum(_core_seconds(kind) for kind in mix.classes if kind.name != SCAN)
    for node in sorted(nodes, key=lambda node: -node.class_factors[SCAN]):
        speed = node.speed * amount("cpu", node.allocatable["cpu"]) / 1000
        scanning = min(1.0, scans / (speed * node.class_factors[SCAN]))
        scans -= scanning * speed * node.class_factors[SCAN]
        computing -= (1 - scanning) * speed
    return scans <= 0 and computing <= 0


def _core_seconds(kind: WorkClass) -> float:
    return kind.share * kind.work_seconds * kind.cpu_millicores / 1000


def swapped_speeds(nodes: Sequence[NodeSpec]) -> dict[str, float]:
    """Node to speed after the fast half has become the slow one, and the other way round: four times each."""
    return {node.name: swapped_speed(node.speed) for node in nodes}


def swapped_speed(speed: float) -> float:
    """What a node of this speed has become."""
    return SPEEDS[(SPEEDS.index(speed) + len(SPEEDS) // 2) % len(SPEEDS)]
