"""What a stream experiment does: its loads and pairs, the schedulers and the stream's length. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from eclectus_e2e.demo.schedulers import DEFAULT_SCHEDULERS, ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.workload.arrivals import DEFAULT_MIX, Arrival, Mix, capacity, poisson_arrivals
from eclectus_e2e.demo.workload.mixed import SPEEDS, swapped_speeds
from eclectus_e2e.pairs import in_turn
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, NodeSpec, default_nodes

WARM_SECONDS = 15.0
SIDE_SHARE = 0.45  # of the main load's length: enough to see the ratio, and the whole stays under 12 minutes
OVERHEAD_SECONDS = 40.0  # of a run: the scheduler's start, and the end of the last pods
START_SECONDS = 20.0  # of the control plane, its nodes and the chart


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
    """The same stream to each scheduler of a pair, one run after another on the same nodes.

    "Pair" is also said of the runs of three schedulers or more.
    """

    title: str
    nodes: Sequence[NodeSpec]
    levels: Sequence[LoadLevel]  # the first one is that of the pictures
    seed: int  # of the first pair; each further one has the next
    mix: Mix = DEFAULT_MIX
    perturbation: Perturbation | None = None
    pairs: int = 1  # at each load

    @property
    def nodes_at_end(self) -> list[NodeSpec]:
        """The nodes with the speeds that they have at the end of a stream."""
        speeds = self.perturbation.speeds if self.perturbation else {}
        return [replace(node, speed=speeds.get(node.name, node.speed)) for node in self.nodes]

    @property
    def capacity(self) -> float:
        """Pods a second at load 1."""
        return capacity(self.nodes, self.mix)

    def arrivals(self, level: LoadLevel, pair: int) -> list[Arrival]:
        """The pods of one pair, which every scheduler gets."""
        return poisson_arrivals(self.seed + pair, level.load * self.capacity, level.stream_seconds, self.mix)

    def in_order(self) -> Iterator[tuple[LoadLevel, int, Sequence[str]]]:
        """The pairs in order: load, number of the pair, its schedulers. These alternate in being first."""
        for level in self.levels:
            for pair in range(self.pairs):
                yield level, pair, in_turn(level.schedulers, pair)

    @property
    def run_seconds(self) -> float:
        """Estimated time of all runs."""
        return self.pairs * sum(level.run_seconds * len(level.schedulers) for level in self.levels)

    @property
    def minutes(self) -> int:
        """Estimated time of everything, in minutes."""
        return max(1, round((START_SECONDS + self.run_seconds) / 60))

    @property
    def about_nodes(self) -> str:
        """What nobody is informed of, and how it is found out."""
        return (
            f"{len(self.nodes)} nodes whose speeds 1 : 2 : 4 : 8 no scheduler is given; "
            "Eclectus learns them from pods that end"
        )

    def __str__(self) -> str:
        lines = [f"{self.title}: about {self.minutes} min", f"  {self.about_nodes}"]
        lines += [
            f"  load {level.load:g}, seed {self.seed}: {level.load * self.capacity:.1f} pods a second for "
            f"{level.stream_seconds:.0f} s, the same to {' and then to '.join(level.schedulers)}"
            for level in self.levels
        ]
        if self.pairs > 1:
            lines.append(
                f"  {self.pairs} such pairs, each with other pods; each begins as the last one ended"
            )
        if self.perturbation:
            lines.append(f"  after {self.perturbation.at_seconds:.0f} s: {self.perturbation.text}")
        lines.append("  shown meanwhile: nodes with true and learned speed, pods on them, and pods that wait")
        return "\n".join(lines)


def stream_plan(
    loads: Sequence[float], seconds: float, seed: int, schedulers: Sequence[str] | None = None
) -> StreamPlan:
    """The first load with every scheduler; the others shorter, with Eclectus and kube-scheduler only."""
    names = schedulers or DEFAULT_SCHEDULERS
    warm = min(WARM_SECONDS, seconds / 2)
    sides = [name for name in names if name in (ECLECTUS, KUBE_SCHEDULER)]
    levels = [LoadLevel(loads[0], seconds, warm, names)]
    levels += [LoadLevel(load, seconds * SIDE_SHARE, warm, sides) for load in loads[1:] if sides]
    return StreamPlan("Stream experiment", default_nodes(DEFAULT_SEED), levels, seed)


NODES_PER_GROUP = 3  # with so few, and work so short, speeds are learned within the stream
WORK_SCALE = 0.5  # of the default mix: 15 pods a second at load 0.6
SHORT_OVERHEAD_SECONDS = 15.0  # of a run: the scheduler's start, and the end of the last pods
CHANGE_TEXT = "the fast nodes become four times slower, the slow ones four times faster"


def short_plan(loads: Sequence[float], seconds: float, seed: int, pairs: int) -> StreamPlan:
    """`seconds` for each scheduler; every pod is timed, also those sent before anything is learned."""
    nodes = default_nodes(DEFAULT_SEED, dict.fromkeys(SPEEDS, NODES_PER_GROUP))
    return StreamPlan(
        "Eclectus beside kube-scheduler",
        nodes,
        [LoadLevel(load, seconds, 0.0, [ECLECTUS, KUBE_SCHEDULER], SHORT_OVERHEAD_SECONDS) for load in loads],
        seed,
        DEFAULT_MIX.scaled(WORK_SCALE),
        Perturbation(seconds / 2, CHANGE_TEXT, swapped_speeds(nodes)),
        pairs,
    )
