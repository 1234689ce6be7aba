"""From observations to the figures of build/demo/perturbations.json, and the target of each. Pure.

docs/demo.md describes the fields.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from eclectus_e2e.demo.perturbations.intervals import (
    FrozenNode,
    IdleNode,
    Intervals,
    LearningInterval,
    RecoveryInterval,
)
from eclectus_e2e.demo.perturbations.observations import Observations
from eclectus_e2e.demo.perturbations.operator_process import MILLICORES
from eclectus_e2e.demo.perturbations.plan import Plan
from eclectus_e2e.demo.perturbations.truth import LEARNED_SHARE
from eclectus_e2e.demo.pod_waits import MAX_SPARE_SHARE, ProbeUsage, probe_usage, start_times_text, stays
from eclectus_e2e.demo.speeds import PREDICTION_FACTOR
from eclectus_e2e.demo.stream.audit import count_overcommits
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.quantities import amount


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
