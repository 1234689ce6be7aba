"""From observations of runs to response times, and counts of what must not happen. Pure.

`Run` holds the observations of one scheduler at one load, `Result` what was computed from them, `Report`
the whole of build/demo/report.json (docs/demo.md describes the fields).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.snapshot import Snapshot
from eclectus_e2e.demo.speeds import (
    LearnedRate,
    NodeSpeed,
    compare_speeds,
    errors_by_speed,
    learned_share,
    without_class_factors,
)
from eclectus_e2e.demo.stream.audit import count_overcommits, count_violations
from eclectus_e2e.demo.stream.groups import GroupTimes, times_by_group
from eclectus_e2e.demo.stream.summary import Summary, ratio, summarise
from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord


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
