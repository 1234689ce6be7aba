"""Nodes and events of the perturbation experiment, and predictions from settings alone. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp
from statistics import mean

from msgspec.structs import replace

from eclectus.api.names import PROBED_LABEL, RESERVED_TAINT
from eclectus.maths.load import unlikelihood
from eclectus.policies.rosella import RosellaLearn
from eclectus_e2e.demo.speeds import samples_until_alarm
from eclectus_e2e.demo.workload.arrivals import Mix
from eclectus_e2e.demo.workload.mixed import (
    SPEEDS,
    best_capacity,
    mix,
    mixed_node,
    mixed_nodes,
    swapped_speeds,
)
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.quantities import amount

IDLE, IDLE_SPEED = "node-idle", SPEEDS[0]
FREEZING_SPEED, COMPARED_SPEED = SPEEDS[1], SPEEDS[2]  # before the swap
OVERHEAD_SECONDS = 90.0  # of a run: start of the scheduler, return of the frozen node, last pods
BENCHMARK = "unit-cpu"  # class of the built-in benchmark's pods
RESERVED = {"key": RESERVED_TAINT, "effect": "NoSchedule"}  # taint of the idle node


@dataclass(frozen=True)
class Settings:
    """Parameters of the experiment. Seconds count from the first arrival unless a comment says otherwise."""

    nodes_per_group: int = 2  # in four groups
    load: float = 0.4  # of `mixed.best_capacity`
    work_scale: float = 0.5  # of the work of mixed.py: thirteen pods a second on eight nodes
    learn_seconds: float = 90.0  # until the swap
    recover_seconds: float = 90.0  # from the swap to the freeze
    rest_seconds: float = 10.0  # from resending the frozen pods to the thaw
    after_seconds: float = 15.0  # from the frozen node's return to the end
    # Settings of the learner that differ from the chart's: a silent node is declared dead in a minute or so,
    # and its capacity is given, because the measured one is a low bound.
    learn: Mapping[str, float] = field(default_factory=lambda: {"spare_share": 0.2, "capacity": 31.7})
    seed: int = 1

    @property
    def mix(self) -> Mix:
        """The classes of the stream."""
        return mix(self.work_scale)


@dataclass(frozen=True)
class Layout:
    """All nodes, those of which the busiest freezes, and the speed of each after the swap."""

    nodes: Sequence[NodeSpec]
    freezing: Sequence[str]
    swapped: Mapping[str, float]

    @property
    def workers(self) -> list[NodeSpec]:
        """The nodes that real pods may use."""
        return [node for node in self.nodes if node.name != IDLE]


@dataclass(frozen=True)
class Prediction:
    """Seconds: of learning and recovery after the swap, and until the frozen node counts as dead."""

    learning: float
    recovery: float
    cut_off: float


@dataclass(frozen=True)
class Plan:
    """Everything that is known before the run."""

    settings: Settings
    layout: Layout
    prediction: Prediction

    @property
    def pods_per_second(self) -> float:
        """Rate of the stream."""
        return self.settings.load * best_capacity(self.layout.workers, self.settings.mix)

    def __str__(self) -> str:
        swap = self.settings.learn_seconds
        freeze = swap + self.settings.recover_seconds
        minutes = round((freeze + self.prediction.cut_off + OVERHEAD_SECONDS) / 60)
        workers, freezing = len(self.layout.workers), " or ".join(self.layout.freezing)
        return "\n".join(
            [
                f"Perturbations: {self.pods_per_second:.1f} pods a second on {workers} nodes and one that is "
                f"only probed; Eclectus, seed {self.settings.seed}, about {minutes} min",
                f"  {swap:.0f} s: fast nodes become four times slower and slow ones four times faster; "
                f"predicted recovery {self.prediction.recovery:.1f} s",
                f"  {freeze:.0f} s: the containers of {freezing} stop; "
                f"predicted cut-off {self.prediction.cut_off:.1f} s",
                "  then its pods are sent again, it thaws, and only probes can show it",
            ]
        )


def quick_settings(seed: int) -> Settings:
    """A shorter experiment with shorter work: about two minutes."""
    return Settings(
        load=0.35,
        work_scale=0.4,
        learn_seconds=20.0,
        recover_seconds=35.0,
        rest_seconds=3.0,
        after_seconds=1.0,
        # Untried work is not penalised: at so low a load no real pod would run on the node that freezes.
        learn={"certainty": 1.0, "spare_share": 0.2, "capacity": 39.7, "untried_share": 1.0},
        seed=seed,
    )


def make_plan(settings: Settings) -> Plan:
    """The plan that these settings give."""
    layout = make_layout(settings)
    return Plan(settings, layout, predict(settings, layout))


def make_layout(settings: Settings) -> Layout:
    """The nodes. The one that freezes is among the fastest after the swap, so that its loss matters.

    Of equal nodes the one that is believed faster takes nearly all pods at a low load, and an idle node's
    silence shows nothing: which of two freezes is chosen when it happens.
    """
    workers = mixed_nodes(settings.nodes_per_group, settings.seed)
    freezing = [node.name for node in workers if node.speed == FREEZING_SPEED][:2]
    # Probed are the idle one, those that may freeze, and one to compare them with: so few, so that each is
    # probed often.
    compared = next(node.name for node in workers if node.speed == COMPARED_SPEED)
    workers = [_labelled(node) if node.name in (*freezing, compared) else node for node in workers]
    idle = replace(_labelled(mixed_node(IDLE, IDLE_SPEED)), taints=[RESERVED])
    nodes = [*workers, idle]
    return Layout(nodes, freezing, swapped_speeds(nodes))


def predict(settings: Settings, layout: Layout) -> Prediction:
    """How long learning, recovery and the verdict on a frozen node should take, by the learner's settings.

    Learning after a change, where D samples raise an alarm (`speeds.samples_until_alarm`), t is the time of
    the longest work on the slowest node that is believed fast, and c is that node's number of slots:

        learning = t (1 + D / c)
        recovery = learning + learning * a / (1 - a) = learning / (1 - a)

    The first task begun after the change ends after t, and D more come at c a time. In the worst case all
    that arrives meanwhile waits, and is worked off with the capacity that the load a leaves.

    Silence (rosella/failure_detector.py): j tasks that stand still bound a node's speed by
    n^(x/j) / y, where y is their time so far over their expected time. The node counts as dead when that is
    below the cut-off, a share c0 (1 - a) m / s of its speed s, where m is the mean speed. Long tasks take
    longest to show it, and of the biggest tasks the fewest fit, so with w the longest work and j the number
    of the biggest tasks that fit:

        cut-off = n^(x/j) w / (c0 (1 - a) m)
    """
    learn, classes = RosellaLearn(**settings.learn), settings.mix.classes  # type: ignore[arg-type]
    work, biggest = max(kind.work_seconds for kind in classes), max(kind.cpu_millicores for kind in classes)
    cores = amount("cpu", layout.nodes[0].allocatable["cpu"])  # all nodes have the same size
    slots = cores / sum(kind.share * kind.cpu_millicores for kind in classes)
    learning = work / SPEEDS[0] * (1 + samples_until_alarm(learn, len(classes)) / slots)
    silence = exp(unlikelihood(len(layout.nodes), learn.certainty) / (cores // biggest))
    limit = learn.spare_share * (1 - settings.load) * mean(node.speed for node in layout.workers)
    return Prediction(learning, learning / (1 - settings.load), silence * work / limit)


def _labelled(node: NodeSpec) -> NodeSpec:
    return replace(node, labels={**node.labels, PROBED_LABEL: "true"})
