"""From what was noted to numbers, and what was wanted of each. Pure; docs/demo.md has every field."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from eclectus_e2e.demo.alarm import PREDICTION_FACTOR
from eclectus_e2e.demo.perturbations.intervals import (
    FrozenNode,
    IdleNode,
    Intervals,
    LearningInterval,
    RecoveryInterval,
)
from eclectus_e2e.demo.perturbations.operator_process import MILLICORES
from eclectus_e2e.demo.perturbations.plan import Layout, Settings
from eclectus_e2e.demo.perturbations.prediction import Prediction
from eclectus_e2e.demo.perturbations.timeline import Observations
from eclectus_e2e.demo.perturbations.truth import LEARNED_SHARE
from eclectus_e2e.demo.pod_waits import MAX_SPARE_SHARE, ProbeUsage, probe_usage, start_times_text, stays
from eclectus_e2e.demo.stream.audit import overcommitted_moments
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.quantities import amount


class Criterion(msgspec.Struct, frozen=True):
    """One thing that was wanted of the act."""

    what: str
    found: str
    wanted: str
    met: bool


class PerturbationReport(msgspec.Struct, frozen=True, kw_only=True):
    """The file build/demo/act-two.json."""

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


def report(noted: Observations, plan: Settings, cast: Layout, expected: Prediction) -> PerturbationReport:
    """Judge the act."""
    story = Intervals(noted, cast, plan.mix.classes)
    learnt, recovered = story.learnt(), story.recovered(expected)
    frozen, idle, probes = story.frozen(expected), story.idle(), _probes(noted, cast)
    arrivals = {pod_name(one): one for one in noted.arrivals}
    ran = Counter(one.name for one in story.pods if one.started)
    succeeded = {one.name for one in story.pods if one.outcome == "succeeded"}
    return PerturbationReport(
        seed=plan.seed,
        nodes=len(cast.nodes),
        load=plan.load,
        pods=len(arrivals),
        learnt=learnt,
        recovered=recovered,
        frozen=frozen,
        idle=idle,
        probes=probes,
        sent_again=len(noted.resent),
        lost=len(arrivals.keys() - succeeded - noted.resent),
        doubled=sum(count > 1 for count in ran.values()),
        overcommitted=noted.counters.overcommitted + overcommitted_moments(story.pods, arrivals, cast.nodes),
        violations=noted.counters.violations + idle.pods,
        wanted=list(_wanted(learnt, recovered, frozen, idle, probes)),
    )


def _probes(noted: Observations, cast: Layout) -> ProbeUsage:
    millicores = {pod_name(one): one.kind.cpu_millicores for one in noted.arrivals}
    pods, probes = stays(noted.entries, noted.sent.at, millicores, MILLICORES)
    room = {node.name: amount("cpu", node.allocatable["cpu"]) for node in cast.nodes}
    return probe_usage(pods, probes, room, noted.marks["over"] - noted.sent.began)


def _wanted(
    learnt: LearningInterval,
    recovered: RecoveryInterval,
    frozen: FrozenNode,
    idle: IdleNode,
    probes: ProbeUsage,
) -> Iterator[Criterion]:
    share = f"at least {LEARNED_SHARE:.0%} within a third"
    spells = (("before the swap", learnt, learnt.seconds), ("after it", recovered, recovered.learned_seconds))
    for what, one, seconds in spells:
        found = f"{one.share:.0%} of {one.cells} cells, {_text(seconds)}"
        yield Criterion(f"speeds learned {what}", found, share, one.share >= LEARNED_SHARE)
    limit = PREDICTION_FACTOR * recovered.predicted_seconds
    yield _within("recovered from the swap", recovered.seconds, limit, f"{PREDICTION_FACTOR:g} x predicted: ")
    last, cut_off = frozen.last_start_seconds, frozen.cut_off_seconds
    yield _within("last real pod started on the frozen node", last, cut_off, "its cut-off: ")
    yield _within(
        "counts as dead",
        frozen.dead_seconds,
        PREDICTION_FACTOR * cut_off,
        f"{PREDICTION_FACTOR:g} x cut-off: ",
    )
    alone = frozen.back_seconds is not None and not frozen.starts_while_out
    found = f"{_text(frozen.back_seconds)}, {frozen.starts_while_out} real pods before the first probe"
    yield Criterion("returns after the thaw by probes", found, "back, 0 real pods", alone)
    known = "nothing" if idle.learned is None else f"{idle.learned:.2f} of {idle.true:g}"
    found = f"{known}, {idle.probes} probes, {idle.pods} real pods"
    yield Criterion(
        "idle node known by probes alone", found, "within a third, 0", idle.within_third and not idle.pods
    )
    spare = f"{probes.spare_share:.1%} of spare, {probes.capacity_share:.1%} of all"
    yield Criterion(
        "probes take", spare, f"at most {MAX_SPARE_SHARE:.0%} of spare", probes.spare_share <= MAX_SPARE_SHARE
    )
    found = f"{start_times_text(probes.met)}; {start_times_text(probes.unmet)} of others"
    yield Criterion(
        "pods that met a probe started after", found, "none later than others", probes.delay_no_pod
    )


def _within(what: str, seconds: float | None, most: float, words: str) -> Criterion:
    met = seconds is not None and seconds <= most
    return Criterion(what, _text(seconds), f"{words}{most:.1f} s", met)


def _text(seconds: float | None) -> str:
    return "never" if seconds is None else f"after {seconds:.1f} s"
