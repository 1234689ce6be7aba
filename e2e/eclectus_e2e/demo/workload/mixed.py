"""A cluster in which one class ranks the nodes differently: by memory bandwidth, not by clock. Pure.

Four groups of nodes have speeds 1 : 2 : 4 : 8 at computing; at `scan` the same groups have 8 : 4 : 2 : 1.
A scheduler that learns one speed for each node is wrong about one of the two; to one that knows no speeds
all nodes look the same. It shows the value of learning rates by class.
"""

import random
from collections.abc import Sequence

from msgspec.structs import replace

from eclectus_e2e.demo.workload.arrivals import Mix, WorkClass, capacity
from eclectus_e2e.testbed.kubelet.nodes import ALLOCATABLE, NodeSpec
from eclectus_e2e.testbed.kubelet.quantities import amount

SPEEDS = (1.0, 2.0, 4.0, 8.0)
SCAN = "scan"
_BISECTIONS = 40
CLASSES = (
    WorkClass("serve", 0.40, 500, 8.0, 4.0),
    WorkClass("build", 0.35, 1000, 16.0, 9.0),
    WorkClass(SCAN, 0.25, 1000, 12.0, 4.0),
)


def mixed_nodes(each: int, seed: int) -> list[NodeSpec]:
    """`each` nodes of each of the four groups; neither name nor label tells the group."""
    speeds = [speed for speed in SPEEDS for _ in range(each)]
    random.Random(seed).shuffle(speeds)
    return [mixed_node(f"node-{number:02d}", speed) for number, speed in enumerate(speeds, start=1)]


def mixed_node(name: str, speed: float) -> NodeSpec:
    """A node of the group with this speed."""
    return NodeSpec(
        name=name,
        group=f"speed-{speed:g}",
        speed=speed,
        class_factors={SCAN: scan_factor(speed)},
        labels={"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        allocatable=dict(ALLOCATABLE),
    )


def scan_factor(speed: float) -> float:
    """Speed at `scan` over speed at computing, of a node that computes at `speed`."""
    return SPEEDS[-1] * SPEEDS[0] / speed**2


def mix(scale: float = 1.0) -> Mix:
    """Three classes without constraints, with all work times `scale`."""
    return Mix(CLASSES).scaled(scale)


def best_capacity(nodes: Sequence[NodeSpec], mix: Mix) -> float:
    """Pods a second that these nodes complete when each class runs where it is fastest in comparison.

    With two kinds of work the linear program is solved by comparative advantage: `scan` goes to the nodes
    with the highest ratio of scan speed to computing speed. Bisection finds the highest feasible rate.
    """
    low, high = 0.0, 2 * capacity([replace(node, class_factors={SCAN: SPEEDS[-1]}) for node in nodes], mix)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_feasible(middle, nodes, mix) else (low, middle)
    return low


def _is_feasible(per_second: float, nodes: Sequence[NodeSpec], mix: Mix) -> bool:
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
    """Node: speed after the fast half has become four times slower and the slow half four times faster."""
    return {node.name: swapped_speed(node.speed) for node in nodes}


def swapped_speed(speed: float) -> float:
    """The speed after the swap of a node that had this speed."""
    return SPEEDS[(SPEEDS.index(speed) + len(SPEEDS) // 2) % len(SPEEDS)]
