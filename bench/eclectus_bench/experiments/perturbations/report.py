"""From observations to the figures of build/demo/perturbations.json, and the target of each. Pure.

docs/demo.md describes the fields. All `seconds` of an interval count from the event that it is about; None:
it did not happen.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from eclectus_bench.experiments.perturbations.observations import (
    LEARNED_SHARE,
    Observations,
    Pair,
    RatesAt,
    Truth,
    first_learned,
    judged_pairs,
    node_speeds,
    share_within_third,
)
from eclectus_bench.experiments.perturbations.plan import IDLE, Plan
from eclectus_bench.experiments.perturbations.timeline import MILLICORES
from eclectus_e2e.demo.pod_waits import (
    MAX_SPARE_SHARE,
    ProbeUsage,
    WaitingPods,
    probe_usage,
    start_times_text,
    stays,
)
from eclectus_e2e.demo.speeds import PREDICTION_FACTOR, TOLERANCE
from eclectus_e2e.demo.stream.report import count_overcommits
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.pod_times import PodRecord
from eclectus_e2e.testbed.kubelet.quantities import amount


class LearningInterval(msgspec.Struct, frozen=True):
    """The pairs (node, class) that are judged at the end of an interval, and how well they are learned."""

    pairs: int  # judged pairs
    share: float  # of them within a third at the end
    seconds: float | None  # until 95 % of them first were


class RecoveryInterval(msgspec.Struct, frozen=True):
    """The same after the swap, and when the pods had recovered from it.

    They have when 95 % of them go to pairs that are learned, and no more pods wait than before the swap.
    Pairs alone are a stricter measure: a node that has become fast is seldom used, so its pairs are learned
    late, and few pods suffer from it.
    """

    pairs: int
    share: float
    learned_seconds: float | None
    seconds: float | None
    predicted_seconds: float


class FrozenNode(msgspec.Struct, frozen=True):
    """The node whose containers stood still, and which then thawed."""

    node: str
    cut_off_seconds: float  # predicted
    last_start_seconds: float  # of a real pod; 0: none after the freeze
    dead_seconds: float | None
    starts_while_out: int  # of real pods, from its death to the end of the first probe after the thaw
    back_seconds: float | None  # from the thaw until it counts as live
    probes: int  # that succeeded there in that time
    pods: int  # real pods that succeeded there in that time


class IdleNode(msgspec.Struct, frozen=True):
    """The node that real pods may not use."""

    true: float
    learned: float | None
    probes: int
    pods: int

    @property
    def within_third(self) -> bool:
        """Whether its speed is learned."""
        return self.learned is not None and abs(self.learned / self.true - 1) <= TOLERANCE


class Intervals:
    """Computes the figures of each interval from the observations."""

    def __init__(self, plan: Plan, observations: Observations) -> None:
        self._plan = plan
        self._seen = observations
        self.truth = Truth(observations.changes)
        self.pods = [one for one in observations.entries if one.name in observations.sent.at]
        self.probes = [one for one in observations.entries if one.name not in observations.sent.at]
        started = [one.started for one in self.pods if one.started]
        self.waiting = WaitingPods(observations.sent.at.values(), started)

    def learning(self) -> LearningInterval:
        """From the first pod to the swap."""
        return LearningInterval(*self._learned(self._seen.sent.began, self._seen.events["swap"]))

    def recovery(self) -> RecoveryInterval:
        """From the swap to the freeze."""
        swap, freeze = self._seen.events["swap"], self._seen.events["freeze"]
        judged, share, learned = self._learned(swap, freeze)
        before = [self.waiting.at(one.at) for one in self._seen.readings if one.at < swap]
        usual = max(before[len(before) // 2 :])
        calm = [one for one in self.readings(swap, freeze) if self.waiting.at(one.at) <= usual]
        recovered = first_learned(calm, self.judged(freeze), self.truth)
        seconds = None if recovered is None else recovered - swap
        return RecoveryInterval(judged, share, learned, seconds, self._plan.prediction.recovery)

    def frozen_node(self) -> FrozenNode:
        """From the freeze to the end."""
        events, node = self._seen.events, self._seen.frozen
        starts = [one.started for one in self.pods if one.node == node and one.started]
        late = [at - events["freeze"] for at in starts if events["freeze"] < at < events["thaw"]]
        dead = self._first_state("dead", events["freeze"], events["thaw"])
        back = None if dead is None else self._first_state("live", events["thaw"], events["end"])
        until = events["end"] if back is None else back
        probes = _succeeded(self.probes, node, events["thaw"], until)
        first_probe = min((one.finished for one in probes), default=until)
        return FrozenNode(
            node=node,
            cut_off_seconds=self._plan.prediction.cut_off,
            last_start_seconds=max(late, default=0.0),
            dead_seconds=None if dead is None else dead - events["freeze"],
            starts_while_out=sum((dead or events["freeze"]) < at < first_probe for at in starts),
            back_seconds=None if back is None else back - events["thaw"],
            probes=len(probes),
            pods=len(_succeeded(self.pods, node, events["thaw"], until)),
        )

    def idle_node(self) -> IdleNode:
        """Over the whole run."""
        last = node_speeds(self._seen.readings[-1], self.truth)
        node = next(one for one in last if one.node == IDLE)
        probes = _succeeded(self.probes, IDLE, 0.0, self._seen.events["end"])
        return IdleNode(node.true, node.learned, len(probes), sum(one.node == IDLE for one in self.pods))

    def judged(self, until: float) -> dict[Pair, int]:
        """The pairs that are judged for an interval that ends then, and the pods that ran there."""
        return judged_pairs(self.pods, self.truth, self._plan.settings.mix.classes, until)

    def readings(self, since: float, until: float) -> list[RatesAt]:
        """The learned rates of an interval."""
        return [one for one in self._seen.readings if since <= one.at <= until]

    def _learned(self, since: float, until: float) -> tuple[int, float, float | None]:
        """Number of judged pairs, share of them learned at the end, seconds until enough were."""
        readings, pairs = self.readings(since, until), dict.fromkeys(self.judged(until), 1)
        first = first_learned(readings, pairs, self.truth)
        share = share_within_third(readings[-1], pairs, self.truth)
        return len(pairs), share, None if first is None else first - since

    def _first_state(self, state: str, since: float, until: float) -> float | None:
        """When the frozen node first had this state."""
        readings = self.readings(since, until)
        return next((one.at for one in readings if one.state(self._seen.frozen) == state), None)


def _succeeded(entries: Sequence[PodRecord], node: str, since: float, until: float) -> list[PodRecord]:
    there = (one for one in entries if one.node == node and one.outcome == "succeeded")
    return [one for one in there if since < one.finished <= until]


class Criterion(msgspec.Struct, frozen=True):
    """One target, and what was measured."""

    what: str
    found: str
    wanted: str
    met: bool


class PerturbationReport(msgspec.Struct, frozen=True, kw_only=True):
    """The file build/demo/perturbations.json."""

    seed: int
    nodes: int
    load: float
    pods: int
    learnt: LearningInterval
    recovered: RecoveryInterval
    frozen: FrozenNode
    idle: IdleNode
    probes: ProbeUsage
    sent_again: int  # pods that stood still on the frozen node
    lost: int
    doubled: int
    overcommitted: int
    violations: int
    wanted: list[Criterion]

    @property
    def sound(self) -> bool:
        """Whether nothing happened that must not."""
        return not (self.lost or self.doubled or self.overcommitted or self.violations)


def make_report(plan: Plan, observations: Observations) -> PerturbationReport:
    """Compute every figure and compare it with its target."""
    intervals = Intervals(plan, observations)
    learning, recovery = intervals.learning(), intervals.recovery()
    frozen, idle, probes = intervals.frozen_node(), intervals.idle_node(), _probes(plan, observations)
    arrivals, nodes = {pod_name(one): one for one in observations.arrivals}, plan.layout.nodes
    ran = Counter(one.name for one in intervals.pods if one.started)
    succeeded = {one.name for one in intervals.pods if one.outcome == "succeeded"}
    counters = observations.counters
    return PerturbationReport(
        seed=plan.settings.seed,
        nodes=len(nodes),
        load=plan.settings.load,
        pods=len(arrivals),
        learnt=learning,
        recovered=recovery,
        frozen=frozen,
        idle=idle,
        probes=probes,
        sent_again=len(observations.resent),
        lost=len(arrivals.keys() - succeeded - observations.resent),
        doubled=sum(count > 1 for count in ran.values()),
        overcommitted=counters.overcommitted + count_overcommits(intervals.pods, arrivals, nodes),
        violations=counters.violations + idle.pods,
        wanted=list(_criteria(learning, recovery, frozen, idle, probes)),
    )


def _probes(plan: Plan, observations: Observations) -> ProbeUsage:
    millicores = {pod_name(one): one.kind.cpu_millicores for one in observations.arrivals}
    pods, probes = stays(observations.entries, observations.sent.at, millicores, MILLICORES)
    room = {node.name: amount("cpu", node.allocatable["cpu"]) for node in plan.layout.nodes}
    return probe_usage(pods, probes, room, observations.events["end"] - observations.sent.began)


def _criteria(
    learning: LearningInterval,
    recovery: RecoveryInterval,
    frozen: FrozenNode,
    idle: IdleNode,
    probes: ProbeUsage,
) -> Iterator[Criterion]:
    yield _learned("before the swap", learning, learning.seconds)
    yield _learned("after the swap", recovery, recovery.learned_seconds)
    limit, times = PREDICTION_FACTOR * recovery.predicted_seconds, f"{PREDICTION_FACTOR:g} x predicted: "
    yield _within("recovered from the swap", recovery.seconds, limit, times)
    last, cut_off = frozen.last_start_seconds, frozen.cut_off_seconds
    yield _within("last real pod started on the frozen node", last, cut_off, "its cut-off: ")
    limit, times = PREDICTION_FACTOR * cut_off, f"{PREDICTION_FACTOR:g} x cut-off: "
    yield _within("frozen node counts as dead", frozen.dead_seconds, limit, times)
    is_back = frozen.back_seconds is not None and not frozen.starts_while_out
    found = f"{_text(frozen.back_seconds)}, {frozen.starts_while_out} real pods before the first probe"
    yield Criterion("returns after the thaw by probes", found, "back, 0 real pods", is_back)
    speed = "nothing" if idle.learned is None else f"{idle.learned:.2f} of {idle.true:g}"
    found = f"{speed}, {idle.probes} probes, {idle.pods} real pods"
    is_learned = idle.within_third and not idle.pods
    yield Criterion("idle node learned by probes alone", found, "within a third, 0 real pods", is_learned)
    found = f"{probes.spare_share:.1%} of spare core-seconds, {probes.capacity_share:.1%} of all"
    target = f"at most {MAX_SPARE_SHARE:.0%} of spare"
    yield Criterion("probes take", found, target, probes.spare_share <= MAX_SPARE_SHARE)
    found = f"{start_times_text(probes.met)}; {start_times_text(probes.unmet)} without"
    target = "none later than the latest without"
    yield Criterion("pods that met a probe started after", found, target, probes.delay_no_pod)


def _learned(when: str, one: LearningInterval | RecoveryInterval, seconds: float | None) -> Criterion:
    found = f"{one.share:.0%} of {one.pairs} pairs of node and class, {_text(seconds)}"
    target = f"at least {LEARNED_SHARE:.0%} within a third"
    return Criterion(f"speeds learned {when}", found, target, one.share >= LEARNED_SHARE)


def _within(what: str, seconds: float | None, most: float, words: str) -> Criterion:
    met = seconds is not None and seconds <= most
    return Criterion(what, _text(seconds), f"{words}{most:.1f} s", met)


def _text(seconds: float | None) -> str:
    return "never" if seconds is None else f"after {seconds:.1f} s"
