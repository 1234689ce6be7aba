"""From observations of runs to response times, and counts of what must not happen. Pure.

`Run` holds the observations of one scheduler in one pair at one load, `Result` what was computed from those
of all pairs together, `Report` the whole of build/demo/stream.json, `ShortReport` that of
build/demo/report.json (docs/demo.md describes the fields). The audit of over-commits and violated constraints
reads only the times that the fake kubelet recorded, and shares no code with the scheduler or with the
kubelet's admission, so a mistake has to be made three times to pass.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from statistics import fmean

import msgspec
import numpy as np

from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.screen import Snapshot
from eclectus_e2e.demo.speeds import (
    LearnedRate,
    NodeSpeed,
    compare_speeds,
    errors_by_speed,
    learned_share,
    without_class_factors,
)
from eclectus_e2e.demo.stream.plan import StreamPlan
from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.pairs import (
    EQUAL,
    FEW_PAIRS,
    LEAST_PAIRS,
    LOST,
    WON,
    Interval,
    mean_interval,
    ratio_interval,
    verdict,
)
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord
from eclectus_e2e.testbed.kubelet.quantities import amount


class Summary(msgspec.Struct, frozen=True):
    """Mean and quantiles of times in seconds; NaN (null in JSON) without any."""

    mean: float
    p50: float
    p95: float
    p99: float


def summarise(seconds: Sequence[float]) -> Summary:
    """Mean and quantiles; NaN of nothing."""
    if not seconds:
        return Summary(*[float("nan")] * 4)
    return Summary(
        float(np.mean(seconds)), *(float(value) for value in np.quantile(seconds, (0.5, 0.95, 0.99)))
    )


def ratio(one: Summary, baseline: Summary) -> Summary:
    """Each figure as a share of the baseline's; NaN where that is 0."""
    pairs = zip(_figures(one), _figures(baseline), strict=True)
    return Summary(*(value / other if other else float("nan") for value, other in pairs))


def _figures(one: Summary) -> list[float]:
    return [getattr(one, name) for name in Summary.__struct_fields__]


def count_overcommits(
    entries: Iterable[PodRecord], arrivals: Mapping[str, Arrival], nodes: Sequence[NodeSpec]
) -> int:
    """How many pods started on a node that had too few free cores or GPUs."""
    by_node: dict[str, list[tuple[float, int, int, int]]] = defaultdict(list)
    for entry in entries:
        if entry.started:
            kind = arrivals[entry.name].kind
            # At the same instant ends come before starts: sorted by sign.
            by_node[entry.node].append((entry.finished, -1, -kind.cpu_millicores, -kind.gpus))
            by_node[entry.node].append((entry.started, +1, kind.cpu_millicores, kind.gpus))
    return sum(_overcommits(sorted(by_node[node.name]), node.allocatable) for node in nodes)


def count_violations(
    entries: Iterable[PodRecord], arrivals: Mapping[str, Arrival], labels: Mapping[str, Mapping[str, str]]
) -> int:
    """How many pods ran on a node that their hard constraint excludes; `labels` by node."""
    ran = ((entry.node, arrivals[entry.name].constraint) for entry in entries if entry.started)
    return sum(one is not None and one.is_hard and not one.met_by(labels[node]) for node, one in ran)


def _overcommits(moments: Iterable[tuple[float, int, int, int]], allocatable: Mapping[str, str]) -> int:
    """Starts beyond a node's size, in sorted (time, sign, millicores, GPUs)."""
    millicores = amount("cpu", allocatable["cpu"])
    gpus = amount("nvidia.com/gpu", allocatable.get("nvidia.com/gpu", "0"))
    used_millicores = used_gpus = count = 0
    for _, sign, cpu, gpu in moments:
        used_millicores, used_gpus = used_millicores + cpu, used_gpus + gpu
        count += sign > 0 and (used_millicores > millicores or used_gpus > gpus)
    return count


FREE, PREFERRING, CONSTRAINED = "free", "preferring", "constrained"
GROUPS = (FREE, PREFERRING, CONSTRAINED)  # every pod is in exactly one; the others are parts of these


class GroupTimes(msgspec.Struct, frozen=True):
    """Timed pods of one group."""

    pods: int
    response_seconds: Summary  # from sending the creation to the end of the work
    wait_seconds: Summary  # from sending the creation to the start of the work


def group(arrival: Arrival) -> str:
    """Which of GROUPS a pod is in."""
    if arrival.constraint is None:
        return FREE
    return CONSTRAINED if arrival.constraint.is_hard else PREFERRING


@dataclass(frozen=True)
class TimedPod:
    """A pod that completed its work; both times are from sending its creation."""

    arrival: Arrival
    wait_seconds: float  # until the start of the work
    response_seconds: float  # until its end


def times_by_group(pods: Sequence[TimedPod]) -> dict[str, GroupTimes]:
    """GROUPS, then each constraint by its text; both only where there are pods."""
    members: dict[str, list[TimedPod]] = {name: [] for name in GROUPS}
    parts: dict[str, list[TimedPod]] = {}
    for pod in pods:
        members[group(pod.arrival)].append(pod)
        if pod.arrival.constraint is not None:
            parts.setdefault(pod.arrival.constraint.text, []).append(pod)
    return {
        name: GroupTimes(len(found), _responses(found), _waits(found))
        for name, found in {**members, **dict(sorted(parts.items()))}.items()
        if found
    }


def _responses(pods: Iterable[TimedPod]) -> Summary:
    return summarise([pod.response_seconds for pod in pods])


def _waits(pods: Iterable[TimedPod]) -> Summary:
    return summarise([pod.wait_seconds for pod in pods])


@dataclass(frozen=True)
class Run:
    """One scheduler in one pair: what was sent, and what the fake kubelet recorded of it."""

    scheduler: str
    load: float
    pair: int
    warm_seconds: float  # pods that arrive before are not timed
    arrivals: Sequence[Arrival]
    sent: Mapping[str, float]  # pod name: Unix seconds at which its creation was sent
    late_seconds: Sequence[float]  # of each creation, against the schedule
    entries: Sequence[PodRecord]
    counters: Counters
    rates: Sequence[LearnedRate]  # empty for a scheduler that learns nothing
    strangers_cores: float  # that processes outside the demo used meanwhile
    snapshots: Sequence[Snapshot] = ()  # one a second

    @property
    def succeeded(self) -> list[PodRecord]:
        """Pods that completed their work."""
        return [entry for entry in self.entries if entry.outcome == "succeeded"]

    @property
    def by_name(self) -> dict[str, Arrival]:
        """Every arrival by the name of its pod."""
        return {pod_name(one): one for one in self.arrivals}

    def timed(self) -> list[TimedPod]:
        """Those of the succeeded pods that arrived after the warm-up."""
        by_name = self.by_name
        return [
            TimedPod(arrival, entry.started - self.sent[entry.name], entry.finished - self.sent[entry.name])
            for entry in self.succeeded
            if (arrival := by_name[entry.name]).at_seconds >= self.warm_seconds
        ]

    def preferences_met(self, labels: Mapping[str, Mapping[str, str]]) -> list[bool]:
        """Whether each preference of a succeeded pod was met; `labels` by node."""
        by_name = self.by_name
        return [
            constraint.met_by(labels[entry.node])
            for entry in self.succeeded
            if (constraint := by_name[entry.name].constraint) and not constraint.is_hard
        ]


class Learning(msgspec.Struct, frozen=True):
    """How well the nodes' speeds were learned."""

    within_third: float
    error_by_speed: dict[str, float | None]
    nodes: list[NodeSpeed]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What the runs of one scheduler at one load measured, those of all pairs together.

    Times are of pods that arrived after the warm-up; counts are of all pods.
    """

    response_seconds: Summary  # from sending the creation to the end of the work
    start_seconds: Summary  # from sending the creation to the start of the work
    response_by_class: dict[str, Summary]
    groups: dict[str, GroupTimes]  # by what pods demand of their node
    pods: int
    timed: int
    lost: int  # never completed their work
    doubled: int  # ran more than once
    overcommitted: int  # refused by a kubelet for lack of room, or found by the audit
    violations: int  # of hard constraints: refused by a kubelet, or found by the audit
    preferences_met: float | None  # share of the preferences; None without any
    late_seconds: Summary  # of the load generator
    learning: Learning | None

    @property
    def sound(self) -> bool:
        """Whether nothing happened that must not."""
        return not (self.lost or self.doubled or self.overcommitted or self.violations)


class RunReport(msgspec.Struct, frozen=True):
    """One run. The seed of a pair's stream is the report's plus `pair`."""

    scheduler: str
    pair: int  # from 0
    response_seconds: Summary
    strangers_cores: float  # that processes outside the demo used meanwhile


class LoadReport(msgspec.Struct, frozen=True):
    """All schedulers at one load.

    `ratios`: response times as shares of kube-scheduler's, geometric means over the pairs; lower is better.
    """

    load: float
    pods_per_second: float
    seconds: float
    schedulers: dict[str, Result]
    ratios: dict[str, Summary]
    runs: list[RunReport]  # in their order


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The file: the main load's figures at the top, those of every load in `loads`."""

    seed: int
    nodes: int
    capacity_pods_per_second: float
    warmup_seconds: float
    load: float
    pods: int
    schedulers: dict[str, Result]
    ratios: dict[str, Summary]
    learned_within_third: float | None
    loads: dict[str, LoadReport]
    sound: bool


def make_result(runs: Sequence[Run], nodes: Sequence[NodeSpec]) -> Result:
    """Compute times and counts of one scheduler's runs at one load."""
    timed = [pod for run in runs for pod in run.timed()]
    labels = {node.name: node.labels for node in nodes}
    preferences = [met for run in runs for met in run.preferences_met(labels)]
    return Result(
        response_seconds=_responses(timed),
        start_seconds=_waits(timed),
        response_by_class={
            klass: _responses(pod for pod in timed if pod.arrival.kind.name == klass)
            for klass in sorted({pod.arrival.kind.name for pod in timed})
        },
        groups=times_by_group(timed),
        pods=sum(len(run.arrivals) for run in runs),
        timed=len(timed),
        lost=sum(len(run.by_name.keys() - {entry.name for entry in run.succeeded}) for run in runs),
        doubled=sum(_count_doubled(run) for run in runs),
        overcommitted=sum(
            run.counters.overcommitted + count_overcommits(run.entries, run.by_name, nodes) for run in runs
        ),
        violations=sum(
            run.counters.violations + count_violations(run.entries, run.by_name, labels) for run in runs
        ),
        preferences_met=fmean(preferences) if preferences else None,
        late_seconds=summarise([late for run in runs for late in run.late_seconds]),
        learning=_learning(runs, nodes),
    )


def _count_doubled(run: Run) -> int:
    """How many pods ran more than once."""
    return sum(count > 1 for count in Counter(entry.name for entry in run.entries if entry.started).values())


def make_report(
    runs: Sequence[Run], nodes: Sequence[NodeSpec], *, seed: int, main_load: float, capacity: float
) -> Report:
    """The report of all runs. `capacity`: pods a second at load 1."""
    levels = {
        f"{load:g}": _load_report([run for run in runs if run.load == load], load * capacity, nodes)
        for load in sorted({run.load for run in runs})
    }
    main = levels[f"{main_load:g}"]
    results = [result for level in levels.values() for result in level.schedulers.values()]
    ours = main.schedulers.get(ECLECTUS)
    return Report(
        seed=seed,
        nodes=len(nodes),
        capacity_pods_per_second=capacity,
        warmup_seconds=next(run.warm_seconds for run in runs if run.load == main_load),
        load=main_load,
        pods=sum(result.pods for result in results),
        schedulers=main.schedulers,
        ratios=main.ratios,
        learned_within_third=ours.learning.within_third if ours and ours.learning else None,
        loads=levels,
        sound=all(result.sound for result in results),
    )


def stream_report(plan: StreamPlan, runs: Sequence[Run]) -> Report:
    """Response times of every run of a plan, and the ratios to kube-scheduler."""
    return make_report(
        runs, plan.nodes_at_end, seed=plan.seed, main_load=plan.levels[0].load, capacity=plan.capacity
    )


def _learning(runs: Sequence[Run], nodes: Sequence[NodeSpec]) -> Learning | None:
    """The nodes of each run, those of all of them one after another."""
    factors = {node.name: node.class_factors for node in nodes}
    true = {node.name: node.speed for node in nodes}
    learned = [without_class_factors(run.rates, factors) for run in runs if run.rates]
    found = [node for rates in learned for node in compare_speeds(rates, true)]
    return Learning(learned_share(found), errors_by_speed(found), found) if found else None


def _load_report(runs: Sequence[Run], per_second: float, nodes: Sequence[NodeSpec]) -> LoadReport:
    by_scheduler: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_scheduler[run.scheduler].append(run)
    reports = [
        RunReport(run.scheduler, run.pair, _responses(run.timed()), run.strangers_cores) for run in runs
    ]
    times = {(one.scheduler, one.pair): one.response_seconds for one in reports}
    others = [name for name in by_scheduler if name != KUBE_SCHEDULER and KUBE_SCHEDULER in by_scheduler]
    return LoadReport(
        runs[0].load,
        per_second,
        max(arrival.at_seconds for run in runs for arrival in run.arrivals),
        {name: make_result(of_one, nodes) for name, of_one in by_scheduler.items()},
        {name: _mean_ratio(times, name) for name in others},
        reports,
    )


def _mean_ratio(times: Mapping[tuple[str, int], Summary], name: str) -> Summary:
    """Of one scheduler's times to kube-scheduler's, over the pairs."""
    ratios = [
        ratio(own, times[KUBE_SCHEDULER, pair])
        for (scheduler, pair), own in times.items()
        if scheduler == name
    ]
    figures = zip(*(_figures(one) for one in ratios), strict=True)
    return Summary(*(ratio_interval(values).mean for values in figures))


WAIT, PREFERENCES = "mean wait before a pod runs", "preferences met"


class Figure(msgspec.Struct, frozen=True):
    """One row of the table: the same figure of both schedulers, means over the pairs."""

    name: str
    eclectus: float
    kube_scheduler: float
    ratio: Interval  # of Eclectus' figure to kube-scheduler's, within the pairs

    @property
    def is_share(self) -> bool:
        """A share, of which more is better; all others are seconds, of which less is better."""
        return self.name == PREFERENCES

    @property
    def verdict(self) -> str:
        """What Eclectus has done in this figure."""
        return verdict(self.ratio, more_is_better=self.is_share)


class Comparison(msgspec.Struct, frozen=True):
    """Both schedulers at one load, and what was won and lost in words."""

    figures: list[Figure]
    sentence: str


class ShortReport(Report, frozen=True, kw_only=True):
    """The file build/demo/report.json: that of the stream experiment, with figures and a sentence by load."""

    changed_seconds: float  # when the speeds changed
    compared: dict[str, Comparison]


def make_short_report(plan: StreamPlan, runs: Sequence[Run]) -> ShortReport:
    """The report of all pairs. Every run needs the other one of its pair."""
    found = stream_report(plan, runs)
    changed = plan.perturbation.at_seconds if plan.perturbation else inf
    compared = {}
    for name, level in found.loads.items():
        figures = _compare([run for run in runs if run.load == level.load], plan.nodes, changed)
        compared[name] = Comparison(figures, sentence(figures))
    fields = {name: getattr(found, name) for name in Report.__struct_fields__}
    return ShortReport(**fields, changed_seconds=changed, compared=compared)


def _compare(runs: Sequence[Run], nodes: Sequence[NodeSpec], changed: float) -> list[Figure]:
    """The figures of both schedulers at one load. `changed`: when the speeds did, in seconds."""
    labels = {node.name: node.labels for node in nodes}
    ours, theirs = (
        [
            _short_figures(run, labels, changed)
            for run in sorted(runs, key=lambda run: run.pair)
            if run.scheduler == name
        ]
        for name in (ECLECTUS, KUBE_SCHEDULER)
    )
    found = []
    for name in ours[0]:
        pairs = [(one[name], other[name]) for one, other in zip(ours, theirs, strict=True)]
        ratio = ratio_interval([one / other for one, other in pairs if other])
        own, other = (mean_interval(values).mean for values in zip(*pairs, strict=True))
        found.append(Figure(name, own, other, ratio))
    return found


def _short_figures(run: Run, labels: Mapping[str, Mapping[str, str]], changed: float) -> dict[str, float]:
    """The figures of one run by name; NaN where there is none."""
    timed = run.timed()
    times, met = _responses(timed), run.preferences_met(labels)
    return {
        "mean response time": times.mean,
        "median response time": times.p50,
        "95th percentile": times.p95,
        "99th percentile": times.p99,
        "mean before the speeds change": _responses(
            pod for pod in timed if pod.arrival.at_seconds < changed
        ).mean,
        "mean after the speeds change": _responses(
            pod for pod in timed if pod.arrival.at_seconds >= changed
        ).mean,
        WAIT: _waits(timed).mean,
        PREFERENCES: fmean(met) if met else nan,
    }


def sentence(figures: Sequence[Figure]) -> str:
    """What was won and what was lost. The first figure decides which of them comes first."""
    first, others = figures[0], figures[1:]
    if not first.ratio.pairs:
        return "Nothing was won or lost: no pod was timed."
    heads = {
        WON: "Eclectus won",
        LOST: "Eclectus lost",
        EQUAL: "Neither won",
        FEW_PAIRS: f"No verdict from {first.ratio.pairs} of at least {LEAST_PAIRS} pairs",
    }
    text = (
        f"{heads[first.verdict]}: {first.name} {first.eclectus:.2f} s, {first.ratio.text()} of "
        f"kube-scheduler's {first.kube_scheduler:.2f} s (lower is better)"
    )
    for word in (LOST, WON) if first.verdict == LOST else (WON, LOST):
        if names := [one.name for one in others if one.verdict == word]:
            also = " also" * (word == first.verdict)
            text += f"; {word}{also}: {', '.join(names)}"
    return text + "."
