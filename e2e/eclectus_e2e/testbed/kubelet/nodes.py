"""The nodes of a fake cluster: their true speeds, labels and allocatable resources; the default set.

A nodes file is JSON: `{"nodes": [NodeSpec, ...]}`.
"""

import itertools
import random
from collections.abc import Mapping, Sequence
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
GPU_MODELS = ("", "", "", "a10", "h100")  # one fifth of the nodes each; three fifths have no GPU
GPUS_PER_NODE = "2"
ALLOCATABLE = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}


class NodeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One node. `speed`: work-seconds per second of a pod. `class_factors`: factor of the speed by class."""

    name: str
    group: str  # name for control commands; never sent to the API server
    speed: float
    class_factors: dict[str, float] = {}
    labels: dict[str, str] = {}
    taints: list[dict[str, str]] = []
    allocatable: dict[str, str] = msgspec.field(default_factory=lambda: dict(ALLOCATABLE))


class NodesFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a nodes file."""

    nodes: list[NodeSpec]


def read_nodes(file: Path) -> list[NodeSpec]:
    """Read a nodes file. Raises UsageError naming the file and the error."""
    try:
        nodes = msgspec.json.decode(file.read_bytes(), type=NodesFile).nodes
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError(f"{file}: {error}") from error
    check_nodes(nodes, str(file))
    return nodes


def check_nodes(nodes: Sequence[NodeSpec], where: str) -> None:
    """Raise UsageError for duplicate names and for speeds that are not positive."""
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise UsageError(f"{where}: two nodes are called {node.name}")
        seen.add(node.name)
        wrong = [value for value in (node.speed, *node.class_factors.values()) if not value > 0]
        if wrong:
            raise UsageError(f"{where}: node {node.name}: a speed must be above 0, not {wrong[0]}")


def default_nodes(seed: int, group_sizes: Mapping[float, int] = GROUP_SIZES) -> list[NodeSpec]:
    """Nodes in groups of equal speed; by default thirty, with the speeds 1 : 2 : 4 : 8.

    Neither labels nor names correlate with the speed: the values of each label are distributed evenly
    within each group, and the nodes are shuffled before they are numbered.
    """
    rng = random.Random(seed)
    speeds = [speed for speed, size in group_sizes.items() for _ in range(size)]
    columns = {
        "kubernetes.io/arch": _evenly_distributed(speeds, ARCHITECTURES, rng),
        "topology.kubernetes.io/zone": _evenly_distributed(speeds, ZONES, rng),
        NIC_GBPS_LABEL: _evenly_distributed(speeds, NIC_GBPS, rng),
        KERNEL_LABEL: _evenly_distributed(speeds, KERNELS, rng),
        GPU_MODEL_LABEL: _evenly_distributed(speeds, GPU_MODELS, rng),
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    order = list(range(len(speeds)))
    rng.shuffle(order)
    return [_node(f"node-{number:02d}", speeds[row], rows[row]) for number, row in enumerate(order, start=1)]


def nodes_text(nodes: Sequence[NodeSpec]) -> str:
    """The text of a nodes file."""
    return msgspec.json.format(msgspec.json.encode(NodesFile(list(nodes))), indent=1).decode() + "\n"


def _evenly_distributed(speeds: Sequence[float], values: Sequence[str], rng: random.Random) -> list[str]:
    """A value for each node; among nodes of equal speed each value occurs equally often."""
    remaining = itertools.cycle(rng.sample(values, len(values)))
    distributed: list[str] = []
    for _, group in itertools.groupby(speeds):
        chosen = [next(remaining) for _ in group]
        rng.shuffle(chosen)
        distributed += chosen
    return distributed


def _node(name: str, speed: float, chosen: dict[str, str]) -> NodeSpec:
    model = chosen.pop(GPU_MODEL_LABEL)
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **chosen}
    allocatable = dict(ALLOCATABLE)
    if model:
        labels[GPU_MODEL_LABEL] = model
        allocatable["nvidia.com/gpu"] = GPUS_PER_NODE
    return NodeSpec(name=name, group=f"speed-{speed:g}", speed=speed, labels=labels, allocatable=allocatable)
