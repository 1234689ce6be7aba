"""From what was noted to numbers, and what was wanted of each. Pure; docs/demo.md has every field."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from eclectus_e2e.demo.alarm import WANTED
from eclectus_e2e.demo.perturbations.intervals import Frozen, Idle, Learnt, Recovered, Story
from eclectus_e2e.demo.perturbations.operator_process import MILLICORES
from eclectus_e2e.demo.perturbations.plan import Cast, Plan
from eclectus_e2e.demo.perturbations.prediction import Prediction
from eclectus_e2e.demo.perturbations.timeline import Noted
from eclectus_e2e.demo.perturbations.truth import SHARE_WANTED
from eclectus_e2e.demo.pod_waits import SPARE_MOST, Probes, starts_text, stays, taken
from eclectus_e2e.demo.stream.audit import overcommitted_moments
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.quantities import amount


class Wanted(msgspec.Struct, frozen=True):
    """One thing that was wanted of the act."""

    what: str
    found: str
    wanted: str
    met: bool


class ShockReport(msgspec.Struct, frozen=True, kw_only=True):
    """The file build/demo/act-two.json."""

    seed: int
    nodes: int
    load: float
    pods: int
    learnt: Learnt
    recovered: Recovered
    frozen: Frozen
    idle: Idle
    probes: Probes
    sent_again: int  # pods that stood still on the frozen node
    lost: int
    doubled: int
    overcommitted: int
    violations: int
    wanted: list[Wanted]

    @property
    def sound(self) -> bool:
        """Whether nothing happened that must not."""
        return not (self.lost or self.doubled or self.overcommitted or self.violations)


def report(noted: Noted, plan: Plan, cast: Cast, expected: Prediction) -> ShockReport:
    """Judge the act."""
    story = Story(noted, cast, plan.mix.classes)
    learnt, recovered = story.learnt(), story.recovered(expected)
    frozen, idle, probes = story.frozen(expected), story.idle(), _probes(noted, cast)
    arrivals = {pod_name(one): one for one in noted.arrivals}
    ran = Counter(one.name for one in story.pods if one.started)
    succeeded = {one.name for one in story.pods if one.outcome == "succeeded"}
    return ShockReport(
        seed=plan.seed,
        nodes=len(cast.nodes),
        load=plan.load,
        pods=len(arrivals),
        learnt=learnt,
        recovered=recovered,
        frozen=frozen,
        idle=idle,
        probes=probes,
        sent_again=len(noted.moved),
        lost=len(arrivals.keys() - succeeded - noted.moved),
        doubled=sum(count > 1 for count in ran.values()),
        overcommitted=noted.counters.overcommitted + overcommitted_moments(story.pods, arrivals, cast.nodes),
        violations=noted.counters.violations + idle.pods,
        wanted=list(_wanted(learnt, recovered, frozen, idle, probes)),
    )


def _probes(noted: Noted, cast: Cast) -> Probes:
    millicores = {pod_name(one): one.kind.cpu_millicores for one in noted.arrivals}
    pods, probes = stays(noted.entries, noted.sent.at, millicores, MILLICORES)
    room = {node.name: amount("cpu", node.allocatable["cpu"]) for node in cast.nodes}
    return taken(pods, probes, room, noted.marks["over"] - noted.sent.began)


def _wanted(
    learnt: Learnt, recovered: Recovered, frozen: Frozen, idle: Idle, probes: Probes
) -> Iterator[Wanted]:
    share = f"at least {SHARE_WANTED:.0%} within a third"
    spells = (("before the swap", learnt, learnt.seconds), ("after it", recovered, recovered.learned_seconds))
    for what, one, seconds in spells:
        found = f"{one.share:.0%} of {one.cells} cells, {_text(seconds)}"
        yield Wanted(f"speeds learned {what}", found, share, one.share >= SHARE_WANTED)
    limit = WANTED * recovered.predicted_seconds
    yield _within("recovered from the swap", recovered.seconds, limit, f"{WANTED:g} x predicted: ")
    last, cut_off = frozen.last_start_seconds, frozen.cut_off_seconds
    yield _within("last real pod started on the frozen node", last, cut_off, "its cut-off: ")
    yield _within("counts as dead", frozen.dead_seconds, WANTED * cut_off, f"{WANTED:g} x cut-off: ")
    alone = frozen.back_seconds is not None and not frozen.starts_while_out
    found = f"{_text(frozen.back_seconds)}, {frozen.starts_while_out} real pods before the first probe"
    yield Wanted("returns after the thaw by probes", found, "back, 0 real pods", alone)
    known = "nothing" if idle.learned is None else f"{idle.learned:.2f} of {idle.true:g}"
    found = f"{known}, {idle.probes} probes, {idle.pods} real pods"
    yield Wanted(
        "idle node known by probes alone", found, "within a third, 0", idle.within_third and not idle.pods
    )
    spare = f"{probes.spare_share:.1%} of spare, {probes.capacity_share:.1%} of all"
    yield Wanted("probes take", spare, f"at most {SPARE_MOST:.0%} of spare", probes.spare_share <= SPARE_MOST)
    found = f"{starts_text(probes.met)}; {starts_text(probes.unmet)} of others"
    yield Wanted("pods that met a probe started after", found, "none later than others", probes.delay_nobody)


def _within(what: str, seconds: float | None, most: float, words: str) -> Wanted:
    met = seconds is not None and seconds <= most
    return Wanted(what, _text(seconds), f"{words}{most:.1f} s", met)


def _text(seconds: float | None) -> str:
    return "never" if seconds is None else f"after {seconds:.1f} s"
