"""The stream of pods: when each arrives, how much work it brings, and its node constraints. Pure.

Arrivals are Poisson. The gaps at every load are the same unit gaps divided by the rate, so streams of one
seed differ between loads only in their pace, and between schedulers in nothing. The unit of work is one
second at speed 1.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eclectus.api.names import GPU_MODEL_LABEL, KERNEL_LABEL, NIC_GBPS_LABEL
from eclectus_e2e.testbed.kubelet.nodes import ARCHITECTURES, ZONES, NodeSpec
from eclectus_e2e.testbed.kubelet.quantities import amount


@dataclass(frozen=True)
class WorkClass:
    """A class of pods with gamma distributed work."""

    name: str
    share: float  # of the pods
    cpu_millicores: int
    work_seconds: float  # mean, at speed 1
    shape: float  # of the gamma distribution: 1 is exponential, 4 has half its deviation, 9 a third
    gpus: int = 0


@dataclass(frozen=True)
class NodeConstraint:
    """The node's label `key` should be one of `allowed`; a constraint that is not hard is a preference."""

    key: str
    allowed: tuple[str, ...]
    is_hard: bool

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels meets the constraint."""
        return labels.get(self.key) in self.allowed

    @property
    def text(self) -> str:
        """For tables and reports: `arch arm64`, or `prefers zone zone-a`."""
        return (
            f"{'' if self.is_hard else 'prefers '}{self.key.rpartition('/')[2]} {' or '.join(self.allowed)}"
        )


@dataclass(frozen=True)
class Arrival:
    """One pod to create, `at_seconds` after the stream's begin."""

    number: int
    at_seconds: float
    kind: WorkClass
    work_seconds: float
    constraint: NodeConstraint | None
    data: tuple[str, ...] = ()  # nodes that have what it reads
    remote: float = 1.0  # factor of its work on all others


# Sizes for which two cores suffice to run everything (about 23 pods a second at load 0.8), and no pod runs
# for minutes on the slowest node. Pods of one class resemble each other, as a job's tasks do, so that the
# few pods that a slow node is given suffice to learn its speed; one class is exponential.
CLASSES = (
    WorkClass("query", 0.25, 500, 6.0, 4.0),
    WorkClass("build", 0.50, 1000, 15.0, 9.0),
    WorkClass("train", 0.20, 2000, 15.0, 9.0),
    WorkClass("infer", 0.05, 1000, 10.0, 1.0, gpus=1),
)
GPU_CONSTRAINT = NodeConstraint(GPU_MODEL_LABEL, ("a10", "h100"), is_hard=True)  # of all GPU pods
# Constraints of the other pods, each with its share of them; with the GPUs' about a third of all pods.
CONSTRAINTS = (
    *(
        (NodeConstraint("kubernetes.io/arch", (arch,), is_hard=True), 0.08 / len(ARCHITECTURES))
        for arch in ARCHITECTURES
    ),
    (NodeConstraint(NIC_GBPS_LABEL, ("25", "100"), is_hard=True), 0.07),
    (NodeConstraint(KERNEL_LABEL, ("6.1", "6.12"), is_hard=True), 0.05),
    *(
        (NodeConstraint("topology.kubernetes.io/zone", (zone,), is_hard=False), 0.06 / len(ZONES))
        for zone in ZONES
    ),
    (NodeConstraint(KERNEL_LABEL, ("6.12",), is_hard=False), 0.04),
)


@dataclass(frozen=True)
class Mix:
    """The classes of a stream, and its constraints with the share of the pods that have each."""

    classes: Sequence[WorkClass]
    constraints: Sequence[tuple[NodeConstraint, float]] = ()

    def scaled(self, factor: float) -> "Mix":
        """The same with all work times multiplied."""
        classes = [replace(kind, work_seconds=factor * kind.work_seconds) for kind in self.classes]
        return replace(self, classes=classes)


DEFAULT_MIX = Mix(CLASSES, CONSTRAINTS)


def capacity(nodes: Sequence[NodeSpec], mix: Mix = DEFAULT_MIX) -> float:
    """Pods a second that these nodes complete with all cores busy and the same mix on every node.

    That is, for each node, its cores over the core-seconds of a mean pod there. Where nodes differ in what
    they are good at, a scheduler that knows it can do more (`mixed.best_capacity`).
    """
    return sum(_completed_per_second(node, mix.classes) for node in nodes)


def poisson_arrivals(seed: int, per_second: float, seconds: float, mix: Mix = DEFAULT_MIX) -> list[Arrival]:
    """Every arrival of the first `seconds`."""
    # A random stream for each property: changing the draws of one leaves the others as they are. The names
    # in the seeds are fixed: with others the recorded results would be of other streams.
    gaps, kinds, sizes, drawn = (random.Random(f"{seed} {what}") for what in ("gap", "kind", "size", "wish"))
    shares = [kind.share for kind in mix.classes]
    arrivals: list[Arrival] = []
    at = gaps.expovariate(per_second)
    while at < seconds:
        (kind,) = kinds.choices(mix.classes, shares)
        work = sizes.gammavariate(kind.shape, kind.work_seconds / kind.shape)
        constraint = _constraint(drawn.random(), mix.constraints)
        arrivals.append(Arrival(len(arrivals), at, kind, work, GPU_CONSTRAINT if kind.gpus else constraint))
        at += gaps.expovariate(per_second)
    return arrivals


def _completed_per_second(node: NodeSpec, classes: Sequence[WorkClass]) -> float:
    core_seconds = sum(
        kind.share * kind.work_seconds * kind.cpu_millicores / 1000 / node.class_factors.get(kind.name, 1.0)
        for kind in classes
    )
    return node.speed * amount("cpu", node.allocatable["cpu"]) / 1000 / core_seconds


def _constraint(drawn: float, constraints: Sequence[tuple[NodeConstraint, float]]) -> NodeConstraint | None:
    """The constraint that a uniform number from 0 to 1 selects by the shares."""
    for constraint, share in constraints:
        drawn -= share
        if drawn < 0:
            return constraint
    return None
