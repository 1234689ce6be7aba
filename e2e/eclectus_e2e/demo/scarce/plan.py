"""What the experiment on scarce nodes does: the nodes, and batches that few of them may run. Pure.

All nodes are equally fast, so what differs between schedulers is what they do about constraints. Eight of the
twenty nodes are scarce: arm64, GPU, or a NIC of 100 Gbit/s. Single pods may run everywhere and need most of
the cores; a scheduler that spreads them over all nodes lets the batches wait for nodes that others could
have left free.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eclectus.api.names import GPU_MODEL_LABEL, KERNEL_LABEL, NIC_GBPS_LABEL
from eclectus_e2e.demo.schedulers import ECLECTUS, ECLECTUS_PHOENIX, KUBE_SCHEDULER
from eclectus_e2e.demo.stream.plan import LoadLevel, StreamPlan
from eclectus_e2e.demo.workload.arrivals import Arrival, Mix, NodeConstraint, WorkClass
from eclectus_e2e.demo.workload.batches import BatchMix, ScarceKind, batch_arrivals
from eclectus_e2e.testbed.kubelet.nodes import ALLOCATABLE, NodeSpec

SECONDS, QUICK_SECONDS = 80.0, 12.0
OVERHEAD_SECONDS = 35.0  # of a run: the scheduler's start, and the end of the last long pods
SCHEDULERS = (ECLECTUS, ECLECTUS_PHOENIX, KUBE_SCHEDULER)
ARCH, ZONE = "kubernetes.io/arch", "topology.kubernetes.io/zone"
GPU = "h100"
# Number, architecture, NIC and GPU of each machine type: labels drawn one by one would make machines that
# nobody builds.
TYPES: tuple[tuple[int, str, str, str], ...] = (
    (12, "amd64", "10", ""),
    (3, "arm64", "10", ""),
    (2, "amd64", "25", GPU),
    (2, "amd64", "100", ""),
    (1, "amd64", "100", GPU),
)
# Nine of ten pods are short: what a pod waits is mostly what long ones before it take.
CLASSES = (WorkClass("short", 0.9, 1000, 2.5, 4.0), WorkClass("long", 0.1, 1000, 12.0, 9.0))
# A fifth of the single pods prefer something: a kernel that half of the nodes have, or a third's zone.
PREFERENCES = (
    (NodeConstraint(KERNEL_LABEL, ("6.12",), is_hard=False), 0.1),
    (NodeConstraint(ZONE, ("zone-a",), is_hard=False), 0.1),
)
# Of all pods, for each kind. At load 0.8 the batches of a kind then need half of the cores of their nodes.
SHARE = 0.09
MIX = BatchMix(
    Mix(CLASSES, PREFERENCES),
    (
        ScarceKind(NodeConstraint(ARCH, ("arm64",), is_hard=True), SHARE),
        ScarceKind(NodeConstraint(GPU_MODEL_LABEL, (GPU,), is_hard=True), SHARE, gpus=1),
        ScarceKind(NodeConstraint(NIC_GBPS_LABEL, ("100",), is_hard=True), SHARE),
    ),
    batch=8,
)


@dataclass(frozen=True)
class ScarcePlan(StreamPlan):
    """The plan. `str` of it says what the nodes and pods are."""

    def arrivals(self, level: LoadLevel) -> list[Arrival]:
        """Single pods and batches."""
        return batch_arrivals(self.seed, level.load * self.capacity, level.stream_seconds, MIX)

    def __str__(self) -> str:
        (level,) = self.levels
        scarce = ", ".join(one.constraint.text for one in MIX.scarce)
        pace = f"{level.load * self.capacity:.1f} pods a second for {level.stream_seconds:.0f} s"
        share = f"{SHARE * len(MIX.scarce):.0%} of the pods come in batches of {MIX.batch}"
        return "\n".join(
            [
                f"{self.title}: about {max(1, round(self.run_seconds / 60))} min",
                f"  {len(self.nodes)} equally fast nodes, few of each of: {scarce}",
                f"  {pace}, the same to {' and then to '.join(level.schedulers)}: load {level.load:g}, "
                f"seed {self.seed}",
                f"  {share} that only one of these kinds of nodes may run",
            ]
        )


def scarce_plan(
    load: float, seconds: float = SECONDS, seed: int = 1, schedulers: Sequence[str] | None = None
) -> ScarcePlan:
    """`seconds` for each scheduler; every pod is timed."""
    level = LoadLevel(load, seconds, 0.0, schedulers or SCHEDULERS, OVERHEAD_SECONDS)
    return ScarcePlan("Batches on scarce nodes", scarce_nodes(), [level], load, seed, MIX.free)


def scarce_nodes() -> list[NodeSpec]:
    """The nodes of TYPES; zones and kernels are spread over each type."""
    return [
        _node(number, arch, nic, gpu)
        for number, (arch, nic, gpu) in enumerate(
            (each[1:] for each in TYPES for _ in range(each[0])), start=1
        )
    ]


def _node(number: int, arch: str, nic_gbps: str, gpu: str) -> NodeSpec:
    name = f"node-{number:02d}"
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        ARCH: arch,
        NIC_GBPS_LABEL: nic_gbps,
        ZONE: f"zone-{'abc'[number % 3]}",
        KERNEL_LABEL: ("6.1", "6.12")[number % 2],
    }
    allocatable = dict(ALLOCATABLE)
    if gpu:  # as many GPUs as cores, so that cores alone limit what runs there
        labels[GPU_MODEL_LABEL] = gpu
        allocatable["nvidia.com/gpu"] = allocatable["cpu"]
    return NodeSpec(name=name, group="all", speed=1.0, labels=labels, allocatable=allocatable)
