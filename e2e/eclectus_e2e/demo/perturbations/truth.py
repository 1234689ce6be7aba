"""What is learned against what is true, at every moment. Pure.

A cell is a node at one kind of work. It is judged once it has enough samples since its speed last changed,
counted from the kubelet's journal and not by what the scheduler says: as many as bring the relative error
of a mean within a third for 99 in 100. Only ratios between nodes mean anything, so for each kind of work
one scale (the median ratio of learned to true) is divided out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from eclectus_e2e.demo.perturbations.plan import BENCHMARK
from eclectus_e2e.demo.speeds import TOLERANCE, LearnedRate, NodeSpeed, compare_speeds
from eclectus_e2e.demo.workload.arrivals import WorkClass
from eclectus_e2e.demo.workload.mixed import CLASSES, SCAN, scan_factor
from eclectus_e2e.testbed.kubelet.journal import Entry

STANDARD_ERRORS = 2.58  # standard errors: 99 in 100
LEAST_SAMPLES = 8
LEARNED_SHARE = 0.95

Pair = tuple[str, str]  # node, class


@dataclass(frozen=True)
class SpeedChange:
    """From now on a node works so fast, at each class."""

    at: float
    node: str
    speeds: Mapping[str, float]


@dataclass(frozen=True)
class RatesAt:
    """What the scheduler believed at one moment."""

    at: float
    rates: Sequence[LearnedRate]

    def state(self, node: str) -> str:
        """The node's state; unknown while nothing was learned of it."""
        return next((cell.state for cell in self.rates if cell.node == node), "unknown")


def speed_change(at: float, node: str, speed: float) -> SpeedChange:
    """A node of the mixed cluster at that speed; at 0 nothing moves there."""
    scan = speed * scan_factor(speed) if speed else 0.0
    return SpeedChange(at, node, {**{kind.name: speed for kind in CLASSES}, SCAN: scan, BENCHMARK: speed})


class Truth:
    """The true speeds over time."""

    def __init__(self, changes: Iterable[SpeedChange]) -> None:
        self._changes: dict[str, list[SpeedChange]] = defaultdict(list)
        for change in sorted(changes, key=lambda each: each.at):
            self._changes[change.node].append(change)

    @property
    def nodes(self) -> list[str]:
        """All of them."""
        return sorted(self._changes)

    def changed(self, node: str, at: float) -> SpeedChange:
        """The newest change of a node at that time; the first one there is, before that."""
        known = self._changes[node]
        return next((change for change in reversed(known) if change.at <= at), known[0])

    def speed(self, pair: Pair, at: float) -> float:
        """Work-seconds a second."""
        node, klass = pair
        return self.changed(node, at).speeds.get(klass, 0.0)


def samples_needed(kind: WorkClass) -> int:
    """How many samples of this kind of work tell a speed within a third."""
    return max(LEAST_SAMPLES, ceil((STANDARD_ERRORS / TOLERANCE) ** 2 / kind.shape))


def judged_pairs(
    entries: Iterable[Entry], truth: Truth, classes: Sequence[WorkClass], until: float
) -> dict[Pair, int]:
    """Cells with enough samples at that time, and how many those are."""
    counts: Counter[Pair] = Counter()
    for entry in entries:
        if entry.outcome == "succeeded" and entry.finished <= until:
            counts[entry.node, entry.klass] += entry.started >= truth.changed(entry.node, until).at
    needed = {kind.name: samples_needed(kind) for kind in classes}
    return {pair: count for pair, count in counts.items() if pair[1] in needed and count >= needed[pair[1]]}


def share_within_third(instant: RatesAt, weights: Mapping[Pair, float], truth: Truth) -> float:
    """Share by weight of these cells that are learned within a third; one of which nothing is said is not."""
    learned = {(cell.node, cell.workload): cell.rate for cell in instant.rates}
    ratios: dict[str, dict[Pair, float]] = defaultdict(dict)
    for pair in weights:
        if pair in learned and truth.speed(pair, instant.at):
            ratios[pair[1]][pair] = learned[pair] / truth.speed(pair, instant.at)
    usual = {klass: median(found.values()) for klass, found in ratios.items()}
    right = sum(
        weights[pair]
        for klass, found in ratios.items()
        for pair, ratio in found.items()
        if abs(ratio / usual[klass] - 1) <= TOLERANCE
    )
    return right / sum(weights.values()) if weights else 0.0


def node_speeds(instant: RatesAt, truth: Truth) -> list[NodeSpeed]:
    """How fast each node is at computing, learned beside true, on one scale: for pictures."""
    true = {node: truth.speed((node, BENCHMARK), instant.at) for node in truth.nodes}
    return compare_speeds([cell for cell in instant.rates if cell.workload != SCAN], true)


def first_learned(instants: Iterable[RatesAt], weights: Mapping[Pair, float], truth: Truth) -> float | None:
    """When enough of these cells were first within a third; None if never."""
    shares = ((one.at, share_within_third(one, weights, truth)) for one in instants)
    return next((at for at, share in shares if share >= LEARNED_SHARE), None)
