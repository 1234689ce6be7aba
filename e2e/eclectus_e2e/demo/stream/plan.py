"""What a stream experiment does: its loads, and for each the schedulers and the stream's length. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from eclectus_e2e.demo.schedulers import DEFAULT_SCHEDULERS, ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.workload.arrivals import DEFAULT_MIX, Arrival, Mix, capacity, poisson_arrivals
from eclectus_e2e.demo.workload.mixed import SPEEDS, swapped_speeds
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, NodeSpec, default_nodes

WARM_SECONDS = 15.0
SIDE_SHARE = 0.45  # of the main load's length: enough to see the ratio, and the whole stays under 12 minutes
OVERHEAD_SECONDS = 40.0  # of a run: the scheduler's start, and the end of the last pods


@dataclass(frozen=True)
class LoadLevel:
    """One load. Response times are measured of pods that arrive after the warm-up."""

    load: float
    seconds: float  # after the warm-up
    warm_seconds: float
    schedulers: Sequence[str]
    overhead_seconds: float = OVERHEAD_SECONDS

    @property
    def stream_seconds(self) -> float:
        """Length of the stream, warm-up included."""
        return self.warm_seconds + self.seconds

    @property
    def run_seconds(self) -> float:
        """Estimated time of one scheduler's run."""
        return self.stream_seconds + self.overhead_seconds


@dataclass(frozen=True)
class Perturbation:
    """Some nodes change their speed during each stream; before the next one they have their first again."""

    at_seconds: float  # since the first arrival
    text: str  # for the screen
    speeds: Mapping[str, float]  # node: speed from then on


@dataclass(frozen=True)
class StreamPlan:
    """The same stream to each scheduler of each load, one run after another on the same nodes."""

    title: str
    nodes: Sequence[NodeSpec]
    levels: Sequence[LoadLevel]
    main_load: float
    seed: int
    mix: Mix = DEFAULT_MIX
    perturbation: Perturbation | None = None

    @property
    def nodes_at_end(self) -> list[NodeSpec]:
        """The nodes with the speeds that they have at the end of a stream."""
        speeds = self.perturbation.speeds if self.perturbation else {}
        return [replace(node, speed=speeds.get(node.name, node.speed)) for node in self.nodes]

    @property
    def capacity(self) -> float:
        """Pods a second at load 1."""
        return capacity(self.nodes, self.mix)

    def arrivals(self, level: LoadLevel) -> list[Arrival]:
        """The pods of one load, which every scheduler gets."""
        return poisson_arrivals(self.seed, level.load * self.capacity, level.stream_seconds, self.mix)

    @property
    def run_seconds(self) -> float:
        """Estimated time of all runs."""
        return sum(level.run_seconds * len(level.schedulers) for level in self.levels)

    def __str__(self) -> str:
        head = (
            f"{self.title}: {len(self.nodes)} nodes of hidden speeds 1 : 2 : 4 : 8, seed {self.seed}, "
            f"about {max(1, round(self.run_seconds / 60))} min"
        )
        levels = (
            f"  load {level.load:g}, {level.load * self.capacity:.1f} pods a second for "
            f"{level.stream_seconds:.0f} s to each of {', '.join(level.schedulers)}"
            for level in self.levels
        )
        return "\n".join([head, *levels])


def stream_plan(
    load: float, loads: Sequence[float], seconds: float, seed: int, schedulers: Sequence[str] | None = None
) -> StreamPlan:
    """The main load with every scheduler; each of `loads` shorter, with Eclectus and kube-scheduler only."""
    names = schedulers or DEFAULT_SCHEDULERS
    warm = min(WARM_SECONDS, seconds / 2)
    sides = [name for name in names if name in (ECLECTUS, KUBE_SCHEDULER)]
    levels = [LoadLevel(load, seconds, warm, names)]
    levels += [LoadLevel(one, seconds * SIDE_SHARE, warm, sides) for one in loads if one != load and sides]
    return StreamPlan("Stream experiment", default_nodes(DEFAULT_SEED), levels, load, seed)


SHORT_LOAD, SHORT_SECONDS, QUICK_SECONDS = 0.6, 100.0, 12.0
NODES_PER_GROUP = 3  # with so few, and work so short, speeds are learned within the stream
WORK_SCALE = 0.5  # of the default mix: 15 pods a second at load 0.6
SHORT_OVERHEAD_SECONDS = 15.0  # of a run: the scheduler's start, and the end of the last pods
START_SECONDS = 20.0  # of the control plane, its nodes and the chart
CHANGE_TEXT = "the fast nodes become four times slower, the slow ones four times faster"


@dataclass(frozen=True)
class ShortPlan(StreamPlan):
    """The plan of the short demo. `str` of it says how long it takes and what it shows."""

    def __str__(self) -> str:
        (level,) = self.levels
        minutes = max(1, round((self.run_seconds + START_SECONDS) / 60))
        change = (
            f"{self.perturbation.at_seconds:.0f} s: {self.perturbation.text}" if self.perturbation else ""
        )
        return "\n".join(
            [
                f"{self.title}: about {minutes} min",
                f"  {len(self.nodes)} nodes whose speeds 1 : 2 : 4 : 8 no scheduler is given; "
                "Eclectus learns them from pods that end",
                f"  the same {level.load * self.capacity:.1f} pods a second for {level.stream_seconds:.0f} s "
                f"to {' and then to '.join(level.schedulers)}: load {level.load:g}, seed {self.seed}",
                f"  after {change}",
                "  shown meanwhile: nodes with true and learned speed, pods on them, and pods that wait",
            ]
        )


def short_plan(load: float = SHORT_LOAD, seconds: float = SHORT_SECONDS, seed: int = 1) -> ShortPlan:
    """`seconds` for each scheduler; every pod is timed, also those sent before anything is learned."""
    nodes = default_nodes(DEFAULT_SEED, dict.fromkeys(SPEEDS, NODES_PER_GROUP))
    level = LoadLevel(load, seconds, 0.0, [ECLECTUS, KUBE_SCHEDULER], SHORT_OVERHEAD_SECONDS)
    perturbation = Perturbation(seconds / 2, CHANGE_TEXT, swapped_speeds(nodes))
    return ShortPlan(
        "Eclectus beside kube-scheduler",
        nodes,
        [level],
        load,
        seed,
        DEFAULT_MIX.scaled(WORK_SCALE),
        perturbation,
    )
