"""The nodes of a fake cluster: their true speeds, labels and sizes; and the default set.

A nodes file is JSON: `{"nodes": [NodeSpec, ...]}`.
"""

import itertools
import random
from collections.abc import Sequence
from pathlib import Path

import msgspec

from eclectus.api.names import GPU_MODEL_LABEL, KERNEL_LABEL, NIC_GBPS_LABEL
from eclectus_e2e.errors import UsageError

GROUP_SIZES = {1.0: 8, 2.0: 8, 4.0: 7, 8.0: 7}  # speed: nodes of that speed
DEFAULT_SEED = 1  # the same thirty nodes on every machine
ZONES = ("zone-a", "zone-b", "zone-c")
ARCHITECTURES = ("amd64", "amd64", "arm64")
NIC_GBPS = ("10", "25", "100")
KERNELS = ("5.15", "6.1", "6.12")
GPU_MODELS = ("", "", "", "a10", "h100")  # a fifth of the nodes each, three fifths without
GPUS_A_NODE = "2"
ALLOCATABLE = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}


class NodeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One node. `speed` is work-seconds done a second by a pod; `class_factors` multiply it."""

    name: str
    group: str  # a name for the control commands; never seen by the API server
    speed: float
    class_factors: dict[str, float] = {}
    labels: dict[str, str] = {}
    taints: list[dict[str, str]] = []
    allocatable: dict[str, str] = msgspec.field(default_factory=lambda: dict(ALLOCATABLE))


class NodesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a nodes file holds."""

    nodes: list[NodeSpec]


def read_nodes(file: Path) -> list[NodeSpec]:
    """Read a nodes file; UsageError says what is wrong and where."""
    try:
        nodes = msgspec.json.decode(file.read_bytes(), type=NodesFile).nodes
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{file}: {error}") from error
    check_nodes(nodes, str(file))
    return nodes


def check_nodes(nodes: Sequence[NodeSpec], where: str) -> None:
    """Refuse doubled names and speeds that are not positive."""
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise UsageError(f"{where}: two nodes are called {node.name}")
        seen.add(node.name)
        wrong = [value for value in (node.speed, *node.class_factors.values()) if not value > 0]
        if wrong:
            raise UsageError(f"{where}: node {node.name}: a speed must be above 0, not {wrong[0]}")


def default_nodes(seed: int) -> list[NodeSpec]:
    """Thirty nodes in four hidden speed groups, 1 : 2 : 4 : 8.

    No label tells the speed: every label's values are dealt out evenly within each group, and the
    names are numbered after a shuffle.
    """
    chance = random.Random(seed)
    speeds = [speed for speed, size in GROUP_SIZES.items() for _ in range(size)]
    columns = {
        "kubernetes.io/arch": _dealt(speeds, ARCHITECTURES, chance),
        "topology.kubernetes.io/zone": _dealt(speeds, ZONES, chance),
        NIC_GBPS_LABEL: _dealt(speeds, NIC_GBPS, chance),
        KERNEL_LABEL: _dealt(speeds, KERNELS, chance),
        GPU_MODEL_LABEL: _dealt(speeds, GPU_MODELS, chance),
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    order = list(range(len(speeds)))
    chance.shuffle(order)
    return [_node(f"node-{number:02d}", speeds[row], rows[row]) for number, row in enumerate(order, start=1)]


def nodes_text(nodes: Sequence[NodeSpec]) -> str:
    """A nodes file's content."""
    return msgspec.json.format(msgspec.json.encode(NodesFile(list(nodes))), indent=1).decode() + "\n"


def _dealt(speeds: Sequence[float], values: Sequence[str], chance: random.Random) -> list[str]:
    """A value for each node: within a run of equal speeds every value as often as any other."""
    cards = itertools.cycle(chance.sample(values, len(values)))
    dealt: list[str] = []
    for _, group in itertools.groupby(speeds):
        hand = [next(cards) for _ in group]
        chance.shuffle(hand)
        dealt += hand
    return dealt


def _node(name: str, speed: float, chosen: dict[str, str]) -> NodeSpec:
    model = chosen.pop(GPU_MODEL_LABEL)
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **chosen}
    allocatable = dict(ALLOCATABLE)
    if model:
        labels[GPU_MODEL_LABEL] = model
        allocatable["nvidia.com/gpu"] = GPUS_A_NODE
    return NodeSpec(name=name, group=f"speed-{speed:g}", speed=speed, labels=labels, allocatable=allocatable)
