"""What happens in the second act, and to whom. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from eclectus.api.names import PROBED_LABEL, RESERVED_TAINT
from eclectus_e2e.demo.mixed import SPEEDS, mix, mixed_node, mixed_nodes, traded
from eclectus_e2e.demo.stream import Mix
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec

IDLE, IDLE_SPEED = "node-idle", SPEEDS[0]
PROBED_SPEEDS = (SPEEDS[1], SPEEDS[2])  # before the swap, of the one that freezes and of another
BENCH = "unit-cpu"  # class of the built-in benchmark's pods: a kind of work of its own
RESERVED = {"key": RESERVED_TAINT, "effect": "NoSchedule"}  # taint of the idle node


@dataclass(frozen=True)
class Plan:
    """The act. Seconds count from the first arrival."""

    each: int = 2  # nodes of each of the four groups
    load: float = 0.4  # of what these nodes can do when it is known who suits what
    size: float = 0.5  # of the work of mixed.py: thirteen pods a second on eight nodes
    learn_seconds: float = 90.0  # until the swap
    recover_seconds: float = 90.0  # from the swap to the frost
    rest_seconds: float = 10.0  # from the end of what stood still to the thaw: no work may come
    after_seconds: float = 15.0  # from the frozen node's return to the end
    # The learner's settings, where not the chart's: a verdict on silence in a minute or so, and what the
    # nodes can do, because its own measure of that is a low bound.
    learn: Mapping[str, float] = field(default_factory=lambda: {"spare_share": 0.2, "capacity": 31.7})
    seed: int = 1

    @property
    def mix(self) -> Mix:
        """What comes."""
        return mix(self.size)


@dataclass(frozen=True)
class Cast:
    """Who plays what: all nodes, the one that freezes, and the speed of each after the swap."""

    nodes: Sequence[NodeSpec]
    frozen: str
    swapped: Mapping[str, float]

    @property
    def workers(self) -> list[NodeSpec]:
        """The nodes that real pods may use."""
        return [node for node in self.nodes if node.name != IDLE]


def cast(plan: Plan) -> Cast:
    """The nodes of the act. The one that freezes is among the fastest after the swap: it is missed."""
    workers = mixed_nodes(plan.each, plan.seed)
    # Three are probed, each the more often: the idle one, the one that freezes, and one to compare them with.
    probed = {speed: next(node.name for node in workers if node.speed == speed) for speed in PROBED_SPEEDS}
    workers = [_labelled(node) if node.name in probed.values() else node for node in workers]
    idle = replace(_labelled(mixed_node(IDLE, IDLE_SPEED)), taints=[RESERVED])
    nodes = [*workers, idle]
    return Cast(nodes, probed[PROBED_SPEEDS[0]], traded(nodes))


def _labelled(node: NodeSpec) -> NodeSpec:
    return replace(node, labels={**node.labels, PROBED_LABEL: "true"})
