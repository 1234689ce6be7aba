"""What the short demo does: one load, two schedulers, and a change of speeds half-way. Pure."""

from dataclasses import dataclass

from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.stream.plan import LoadLevel, Perturbation, StreamPlan
from eclectus_e2e.demo.workload.arrivals import DEFAULT_MIX
from eclectus_e2e.demo.workload.mixed import SPEEDS, swapped_speeds
from eclectus_e2e.testbed.kubelet.nodes import DEFAULT_SEED, default_nodes

LOAD, SECONDS, QUICK_SECONDS = 0.6, 100.0, 12.0
NODES_PER_GROUP = 3  # with so few, and work so short, speeds are learned within the stream
WORK_SCALE = 0.5  # of the default mix: 15 pods a second at load 0.6
OVERHEAD_SECONDS = 15.0  # of a run: the scheduler's start, and the end of the last pods
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


def short_plan(load: float = LOAD, seconds: float = SECONDS, seed: int = 1) -> ShortPlan:
    """`seconds` for each scheduler; every pod is timed, also those sent before anything is learned."""
    nodes = default_nodes(DEFAULT_SEED, dict.fromkeys(SPEEDS, NODES_PER_GROUP))
    level = LoadLevel(load, seconds, 0.0, [ECLECTUS, KUBE_SCHEDULER], OVERHEAD_SECONDS)
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
