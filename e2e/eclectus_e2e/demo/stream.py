"""The stream of pods: who arrives when, how much work it brings, where it may and would like to run.

Pure. Arrivals are Poisson: a load's gaps are one set of unit gaps over the rate, so that streams of the
same seed differ in nothing but their pace from load to load, and in nothing at all from scheduler to
scheduler. The unit of work is a second at speed 1.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eclectus.api.names import GPU_MODEL_LABEL, KERNEL_LABEL, NIC_GBPS_LABEL
from eclectus_e2e.testbed.kubelet.nodes import ARCHITECTURES, ZONES, NodeSpec
from eclectus_e2e.testbed.kubelet.quantities import amount


@dataclass(frozen=True)
class WorkClass:
    """A kind of work. `shape` is the gamma distribution's: 1 is exponential, 4 half as wide, 9 a third."""

    name: str
    share: float  # of the pods
    cpu_millicores: int
    work_seconds: float  # mean, at speed 1
    shape: float
    gpus: int = 0


@dataclass(frozen=True)
class Wish:
    """A node constraint: the node's label `key` is one of `allowed`. Soft ones are preferences."""

    key: str
    allowed: tuple[str, ...]
    hard: bool

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels is what was asked for."""
        return labels.get(self.key) in self.allowed


@dataclass(frozen=True)
class Arrival:
    """One pod to be: `at_seconds` after the stream's begin."""

    number: int
    at_seconds: float
    kind: WorkClass
    work_seconds: float
    wish: Wish | None


# Sizes such that two cores can play it all (about 23 pods a second at load 0.8) and nobody runs for minutes
# on the slowest node. Runs of one kind resemble each other, as a job's tasks do, so that the few pods
# that a slow node is given tell its speed; one class is exponential.
CLASSES = (
    WorkClass("query", 0.25, 500, 6.0, 4.0),
    WorkClass("build", 0.50, 1000, 15.0, 9.0),
    WorkClass("train", 0.20, 2000, 15.0, 9.0),
    WorkClass("infer", 0.05, 1000, 10.0, 1.0, gpus=1),
)
GPU_WISH = Wish(GPU_MODEL_LABEL, ("a10", "h100"), hard=True)  # whoever wants a GPU has it
# Wish of the other pods, and what share of them has it: with the GPUs' about a third of all pods.
WISHES = (
    *((Wish("kubernetes.io/arch", (arch,), hard=True), 0.08 / len(ARCHITECTURES)) for arch in ARCHITECTURES),
    (Wish(NIC_GBPS_LABEL, ("25", "100"), hard=True), 0.07),
    (Wish(KERNEL_LABEL, ("6.1", "6.12"), hard=True), 0.05),
    *((Wish("topology.kubernetes.io/zone", (zone,), hard=False), 0.06 / len(ZONES)) for zone in ZONES),
    (Wish(KERNEL_LABEL, ("6.12",), hard=False), 0.04),
)


@dataclass(frozen=True)
class Mix:
    """What comes: kinds of work, and the constraints with the share of the pods that have each."""

    classes: Sequence[WorkClass]
    wishes: Sequence[tuple[Wish, float]] = ()


MAIN = Mix(CLASSES, WISHES)


def capacity(nodes: Sequence[NodeSpec], mix: Mix = MAIN) -> float:
    """Pods a second that these nodes can end, all cores busy and every node given the same mix.

    Of a node: its cores over the core-seconds of a mean pod there. Where some nodes suit some work, a
    scheduler that knows can do more than this.
    """
    return sum(_ended_a_second(node, mix.classes) for node in nodes)


def stream(seed: int, per_second: float, seconds: float, mix: Mix = MAIN) -> list[Arrival]:
    """Every arrival of the first `seconds`."""
    # One chance a question: another answer to one of them leaves the others as they are.
    gaps, kinds, sizes, wishes = (random.Random(f"{seed} {what}") for what in ("gap", "kind", "size", "wish"))
    shares = [kind.share for kind in mix.classes]
    arrivals: list[Arrival] = []
    at = gaps.expovariate(per_second)
    while at < seconds:
        (kind,) = kinds.choices(mix.classes, shares)
        work = sizes.gammavariate(kind.shape, kind.work_seconds / kind.shape)
        wish = _wish(wishes.random(), mix.wishes)
        arrivals.append(Arrival(len(arrivals), at, kind, work, GPU_WISH if kind.gpus else wish))
        at += gaps.expovariate(per_second)
    return arrivals


def _ended_a_second(node: NodeSpec, classes: Sequence[WorkClass]) -> float:
    core_seconds = sum(
        kind.share * kind.work_seconds * kind.cpu_millicores / 1000 / node.class_factors.get(kind.name, 1.0)
        for kind in classes
    )
    return node.speed * amount("cpu", node.allocatable["cpu"]) / 1000 / core_seconds


def _wish(drawn: float, wishes: Sequence[tuple[Wish, float]]) -> Wish | None:
    for wish, share in wishes:
        drawn -= share
        if drawn < 0:
            return wish
    return None
