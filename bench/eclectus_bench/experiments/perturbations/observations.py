"""What was done and seen in the perturbation experiment, and what of it was right. Times are Unix seconds.

A pair (node, class) is judged once it has enough samples since the node's speed last changed, counted from
the fake kubelet's records and not from the scheduler: so many that the mean of the samples has a relative
error of at most a third with probability 99 %. Only ratios between nodes mean anything, so for each class
one scale (the median ratio of learned to true) is divided out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from statistics import median

from eclectus_bench.experiments.perturbations.plan import BENCHMARK
from eclectus_e2e.demo.speeds import TOLERANCE, LearnedRate, NodeSpeed, compare_speeds
from eclectus_e2e.demo.workload.arrivals import Arrival, WorkClass
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
    frozen: str = ""  # the node that froze
    resent: set[str] = field(default_factory=set)  # names of frozen pods that were deleted and sent again
    entries: Sequence[PodRecord] = ()
    counters: Counters = NOTHING_COUNTED


def speed_change(at: float, node: str, speed: float) -> SpeedChange:
    """A node of the mixed cluster changes to this speed at computing; 0 freezes it."""
    scan = speed * scan_factor(speed) if speed else 0.0
    return SpeedChange(at, node, {**{kind.name: speed for kind in CLASSES}, SCAN: scan, BENCHMARK: speed})


STANDARD_ERRORS = 2.58  # two-sided 99 % of a normal distribution
LEAST_SAMPLES = 8
LEARNED_SHARE = 0.95  # target: share of the judged pairs that are learned

Pair = tuple[str, str]  # node, class


class Truth:
    """The true speeds over time."""

    def __init__(self, changes: Iterable[SpeedChange]) -> None:
        self._changes: dict[str, list[SpeedChange]] = defaultdict(list)
        for change in sorted(changes, key=lambda each: each.at):
            self._changes[change.node].append(change)

    @property
    def nodes(self) -> list[str]:
        """All nodes, sorted."""
        return sorted(self._changes)

    def changed(self, node: str, at: float) -> SpeedChange:
        """The newest change of a node at that time; before the first change, the first."""
        known = self._changes[node]
        return next((change for change in reversed(known) if change.at <= at), known[0])

    def speed(self, pair: Pair, at: float) -> float:
        """Work-seconds a second; 0 of an unknown class."""
        node, klass = pair
        return self.changed(node, at).speeds.get(klass, 0.0)


def samples_needed(kind: WorkClass) -> int:
    """How many samples of this class give a speed within a third with probability 99 %."""
    return max(LEAST_SAMPLES, ceil((STANDARD_ERRORS / TOLERANCE) ** 2 / kind.shape))


def judged_pairs(
    entries: Iterable[PodRecord], truth: Truth, classes: Sequence[WorkClass], until: float
) -> dict[Pair, int]:
    """Pairs with enough samples at the time `until`, and their numbers of samples."""
    counts: Counter[Pair] = Counter()
    for entry in entries:
        if entry.outcome == "succeeded" and entry.finished <= until:
            counts[entry.node, entry.klass] += entry.started >= truth.changed(entry.node, until).at
    needed = {kind.name: samples_needed(kind) for kind in classes}
    return {pair: count for pair, count in counts.items() if pair[1] in needed and count >= needed[pair[1]]}


def share_within_third(reading: RatesAt, weights: Mapping[Pair, float], truth: Truth) -> float:
    """Share, by weight, of these pairs that are learned within a third; a pair without a rate is not."""
    learned = {(one.node, one.workload): one.rate for one in reading.rates}
    ratios: dict[str, dict[Pair, float]] = defaultdict(dict)
    for pair in weights:
        if pair in learned and truth.speed(pair, reading.at):
            ratios[pair[1]][pair] = learned[pair] / truth.speed(pair, reading.at)
    scales = {klass: median(found.values()) for klass, found in ratios.items()}
    right = sum(
        weights[pair]
        for klass, found in ratios.items()
        for pair, ratio in found.items()
        if abs(ratio / scales[klass] - 1) <= TOLERANCE
    )
    return right / sum(weights.values()) if weights else 0.0


def node_speeds(reading: RatesAt, truth: Truth) -> list[NodeSpeed]:
    """The speed of each node at computing, learned and true on one scale, in the order of `truth.nodes`."""
    true = {node: truth.speed((node, BENCHMARK), reading.at) for node in truth.nodes}
    return compare_speeds([one for one in reading.rates if one.workload != SCAN], true)


def first_learned(readings: Iterable[RatesAt], weights: Mapping[Pair, float], truth: Truth) -> float | None:
    """When LEARNED_SHARE of these pairs was first within a third; None if never."""
    shares = ((one.at, share_within_third(one, weights, truth)) for one in readings)
    return next((at for at, share in shares if share >= LEARNED_SHARE), None)
