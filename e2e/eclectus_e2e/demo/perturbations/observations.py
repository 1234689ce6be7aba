"""What was done and seen during the perturbation experiment. Times are Unix seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eclectus_e2e.demo.perturbations.plan import BENCHMARK
from eclectus_e2e.demo.speeds import LearnedRate
from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.demo.workload.load import SentPods
from eclectus_e2e.demo.workload.mixed import CLASSES, SCAN, scan_factor
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord

NOTHING_COUNTED = Counters(
    started=0, finished=0, killed=0, vanished=0, refused={}, overcommitted=0, violations=0
)


@dataclass(frozen=True)
class SpeedChange:
    """From this time on a node has these speeds, by class."""

    at: float
    node: str
    speeds: Mapping[str, float]


@dataclass(frozen=True)
class RatesAt:
    """What the scheduler had learned at one moment."""

    at: float
    rates: Sequence[LearnedRate]

    def state(self, node: str) -> str:
        """The node's state; `unknown` while nothing is learned of it."""
        return next((one.state for one in self.rates if one.node == node), "unknown")


@dataclass
class Observations:
    """Grows during the run."""

    sent: SentPods
    arrivals: list[Arrival]
    changes: list[SpeedChange] = field(default_factory=list)
    readings: list[RatesAt] = field(default_factory=list)
    events: dict[str, float] = field(default_factory=dict)  # swap, freeze, resend, thaw, end
    resent: set[str] = field(default_factory=set)  # names of frozen pods that were deleted and sent again
    entries: Sequence[PodRecord] = ()
    counters: Counters = NOTHING_COUNTED


def speed_change(at: float, node: str, speed: float) -> SpeedChange:
    """A node of the mixed cluster changes to this speed at computing; 0 freezes it."""
    scan = speed * scan_factor(speed) if speed else 0.0
    return SpeedChange(at, node, {**{kind.name: speed for kind in CLASSES}, SCAN: scan, BENCHMARK: speed})
