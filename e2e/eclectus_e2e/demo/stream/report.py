"""From observations of runs to response times, and counts of what must not happen. Pure.

`Run` holds the observations of one scheduler at one load, `Result` what was computed from them, `Report`
the whole of build/demo/stream.json, `ShortReport` that of build/demo/report.json (docs/demo.md describes the
fields). The audit of over-commits and violated constraints reads only the times that the fake kubelet
recorded, and shares no code with the scheduler or with the kubelet's admission, so a mistake has to be made
three times to pass.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

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


def times_by_group(
    entries: Sequence[PodRecord], arrivals: Mapping[str, Arrival], sent: Mapping[str, float]
) -> dict[str, GroupTimes]:
    """GROUPS, then each constraint by its text; both only where there are pods. Arrivals are by pod name."""
    members: dict[str, list[PodRecord]] = {name: [] for name in GROUPS}
    parts: dict[str, list[PodRecord]] = {}
    for entry in entries:
        arrival = arrivals[entry.name]
        members[group(arrival)].append(entry)
        if arrival.constraint is not None:
            parts.setdefault(arrival.constraint.text, []).append(entry)
    return {
        name: GroupTimes(
            len(found),
            summarise([entry.finished - sent[entry.name] for entry in found]),
            summarise([entry.started - sent[entry.name] for entry in found]),
        )
        for name, found in {**members, **dict(sorted(parts.items()))}.items()
        if found
    }


@dataclass(frozen=True)
class Run:
    """One scheduler at one load: what was sent, and what the fake kubelet recorded of it."""

    scheduler: str
    load: float
    warm_seconds: float  # pods that arrive before are not timed
    arrivals: Sequence[Arrival]
    sent: Mapping[str, float]  # pod name: Unix seconds at which its creation was sent
    late_seconds: Sequence[float]  # of each creation, against the schedule
    entries: Sequence[PodRecord]
    counters: Counters
    rates: Sequence[LearnedRate]  # empty for a scheduler that learns nothing
    snapshots: Sequence[Snapshot] = ()  # one a second

    @property
    def succeeded(self) -> list[PodRecord]:
        """Pods that completed their work."""
        return [entry for entry in self.entries if entry.outcome == "succeeded"]

    def timed(self) -> list[PodRecord]:
        """Those of the succeeded pods that arrived after the warm-up."""
        counted = {pod_name(one) for one in self.arrivals if one.at_seconds >= self.warm_seconds}
        return [entry for entry in self.succeeded if entry.name in counted]

    def response_seconds(self, entries: Sequence[PodRecord]) -> list[float]:
        """Of each of these pods: from sending its creation to the end of its work."""
        return [entry.finished - self.sent[entry.name] for entry in entries]


class Learning(msgspec.Struct, frozen=True):
    """How well the nodes' speeds were learned."""

    within_third: float
    error_by_speed: dict[str, float | None]
    nodes: list[NodeSpeed]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one run measured. Times are of pods that arrived after the warm-up; counts are of all pods."""

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


class LoadReport(msgspec.Struct, frozen=True):
    """All schedulers at one load. `ratios`: response times as shares of kube-scheduler's; lower is better."""

    load: float
    pods_per_second: float
    seconds: float
    schedulers: dict[str, Result]
    ratios: dict[str, Summary]


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


def make_result(run: Run, nodes: Sequence[NodeSpec]) -> Result:
    """Compute times and counts of one run."""
    by_name = {pod_name(arrival): arrival for arrival in run.arrivals}
    runs = Counter(entry.name for entry in run.entries if entry.started)
    timed = run.timed()
    labels = {node.name: node.labels for node in nodes}
    preferences = [
        constraint.met_by(labels[entry.node])
        for entry in run.succeeded
        if (constraint := by_name[entry.name].constraint) and not constraint.is_hard
    ]
    return Result(
        response_seconds=summarise(run.response_seconds(timed)),
        start_seconds=summarise([entry.started - run.sent[entry.name] for entry in timed]),
        response_by_class={
            klass: summarise(run.response_seconds([one for one in timed if one.klass == klass]))
            for klass in sorted({entry.klass for entry in timed})
        },
        groups=times_by_group(timed, by_name, run.sent),
        pods=len(run.arrivals),
        timed=len(timed),
        lost=len(by_name.keys() - {entry.name for entry in run.succeeded}),
        doubled=sum(count > 1 for count in runs.values()),
        overcommitted=run.counters.overcommitted + count_overcommits(run.entries, by_name, nodes),
        violations=run.counters.violations + count_violations(run.entries, by_name, labels),
        preferences_met=float(np.mean(preferences)) if preferences else None,
        late_seconds=summarise(run.late_seconds),
        learning=_learning(run, nodes),
    )


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
        runs, plan.nodes_at_end, seed=plan.seed, main_load=plan.main_load, capacity=plan.capacity
    )


def _learning(run: Run, nodes: Sequence[NodeSpec]) -> Learning | None:
    if not run.rates:
        return None
    rates = without_class_factors(run.rates, {node.name: node.class_factors for node in nodes})
    found = compare_speeds(rates, {node.name: node.speed for node in nodes})
    return Learning(learned_share(found), errors_by_speed(found), found)


def _load_report(runs: Sequence[Run], per_second: float, nodes: Sequence[NodeSpec]) -> LoadReport:
    results = {run.scheduler: make_result(run, nodes) for run in runs}
    baseline = results.get(KUBE_SCHEDULER)
    others = {name: one for name, one in results.items() if name != KUBE_SCHEDULER}
    ratios = (
        {name: ratio(one.response_seconds, baseline.response_seconds) for name, one in others.items()}
        if baseline
        else {}
    )
    seconds = max(arrival.at_seconds for run in runs for arrival in run.arrivals)
    return LoadReport(runs[0].load, per_second, seconds, results, ratios)


EQUAL_WITHIN = 0.05  # relative difference; chosen, not measured: noise of a single run is no win
WAIT = "mean wait before a pod runs"
BETTER, WORSE, EQUAL, UNKNOWN = "better", "worse", "equal", "not measured"


class Figure(msgspec.Struct, frozen=True):
    """One row of the table: the same figure of both schedulers."""

    name: str
    eclectus: float
    kube_scheduler: float
    lower_is_better: bool = True
    is_share: bool = False  # else seconds

    @property
    def ratio(self) -> float:
        """Eclectus' figure as a share of kube-scheduler's; NaN when there is none."""
        return self.eclectus / self.kube_scheduler if self.kube_scheduler else float("nan")

    @property
    def verdict(self) -> str:
        """What Eclectus is in this figure."""
        if not isfinite(self.ratio):
            return UNKNOWN
        if abs(self.ratio - 1) <= EQUAL_WITHIN:
            return EQUAL
        return BETTER if (self.ratio < 1) == self.lower_is_better else WORSE


class ShortReport(Report, frozen=True, kw_only=True):
    """The file build/demo/report.json: that of the stream experiment, with the table and the sentence."""

    changed_seconds: float  # when the speeds changed
    figures: list[Figure]
    sentence: str


def make_short_report(plan: StreamPlan, runs: Sequence[Run]) -> ShortReport:
    """The report of both runs."""
    found = stream_report(plan, runs)
    changed = plan.perturbation.at_seconds if plan.perturbation else float("inf")
    figures = list(_short_figures(found, {run.scheduler: run for run in runs}, changed))
    fields = {name: getattr(found, name) for name in Report.__struct_fields__}
    return ShortReport(**fields, changed_seconds=changed, figures=figures, sentence=sentence(figures))


def sentence(figures: Sequence[Figure]) -> str:
    """What was won and what was lost. The first figure decides which of them comes first."""
    first, others = figures[0], figures[1:]
    if first.verdict == UNKNOWN:
        return "Nothing was won or lost: no pod was timed."
    head = {BETTER: "Eclectus won", WORSE: "Eclectus lost", EQUAL: "Neither won"}[first.verdict]
    text = (
        f"{head}: {first.name} {first.eclectus:.2f} s, {first.ratio:.2f} of kube-scheduler's "
        f"{first.kube_scheduler:.2f} s (lower is better)"
    )
    for verdict in (WORSE, BETTER) if first.verdict == WORSE else (BETTER, WORSE):
        if names := [one.name for one in others if one.verdict == verdict]:
            also = " also" * (verdict == first.verdict)
            text += f"; {verdict}{also} in {', '.join(names)}"
    return text + "."


def _short_figures(report: Report, runs: dict[str, Run], changed: float) -> Iterator[Figure]:
    results = [report.schedulers[name] for name in (ECLECTUS, KUBE_SCHEDULER)]
    ours, theirs = (result.response_seconds for result in results)
    yield Figure("mean response time", ours.mean, theirs.mean)
    yield Figure("median response time", ours.p50, theirs.p50)
    yield Figure("95th percentile", ours.p95, theirs.p95)
    yield Figure("99th percentile", ours.p99, theirs.p99)
    parts = [_before_and_after(runs[name], changed) for name in (ECLECTUS, KUBE_SCHEDULER)]
    yield Figure("mean before the speeds change", parts[0][0].mean, parts[1][0].mean)
    yield Figure("mean after the speeds change", parts[0][1].mean, parts[1][1].mean)
    waits = [result.start_seconds.mean for result in results]
    yield Figure(WAIT, waits[0], waits[1])
    met = [result.preferences_met for result in results]
    if met[0] is not None and met[1] is not None:
        yield Figure("preferences met", met[0], met[1], lower_is_better=False, is_share=True)


def _before_and_after(run: Run, changed: float) -> tuple[Summary, Summary]:
    """Response times of the pods sent before the speeds changed, and of those sent after."""
    early = {pod_name(one) for one in run.arrivals if one.at_seconds < changed}
    timed = run.timed()
    return (
        summarise(run.response_seconds([entry for entry in timed if entry.name in early])),
        summarise(run.response_seconds([entry for entry in timed if entry.name not in early])),
    )
