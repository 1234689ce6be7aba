"""The experiment on real nodes: real kubelets and containers on this machine, with hidden CPU quotas."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import uvloop
from matplotlib.axes import Axes
from rich.table import Table

from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.pictures import COLOURS, DASHES, LINE_COLOUR, SPEED_COLOURS, draw_grid, picture
from eclectus_e2e.demo.pod_waits import MAX_SPARE_SHARE, ProbeUsage
from eclectus_e2e.demo.real.observations import Observations
from eclectus_e2e.demo.real.plan import POOL, SCHEDULER_NAMES, SYSTEM, VALUES, WORKERS, Plan, real_plan
from eclectus_e2e.demo.real.report import (
    TARGETS,
    ColocationTrials,
    QuotaReport,
    RealReport,
    make_report,
)
from eclectus_e2e.demo.real.timeline import Timeline
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.screen import Screen
from eclectus_e2e.demo.speeds import PREDICTION_FACTOR
from eclectus_e2e.demo.tables import judged, table_of
from eclectus_e2e.errors import MachineError
from eclectus_e2e.pairs import Interval
from eclectus_e2e.testbed.chart import NAMESPACE
from eclectus_e2e.testbed.images import archives
from eclectus_e2e.testbed.kubectl import Kubectl
from eclectus_e2e.testbed.kubelet.api import Api, read_access
from eclectus_e2e.testbed.realnodes import nodes, requirements
from eclectus_e2e.testbed.realnodes.layout import NodeSpec
from eclectus_e2e.testbed.realnodes.nodes import RealNodes
from eclectus_e2e.testbed.release import Release

PANELS: list[Any] = [["speeds", "speeds"], ["times", "times"], ["mean", "p99"]]


def draw(plan: Plan, observations: Observations, report: RealReport, file: Path) -> None:
    """Write the picture as PNG."""
    title = (
        "Real containers under CPU quotas that no scheduler is given: what is learned, how long pods take\n"
        f"{len(plan.quotas)} real nodes, seed {plan.seed}"
    )
    with picture(file, 12, 11, title) as figure:
        panels = figure.subplot_mosaic(PANELS, height_ratios=(3, 3, 2))
        speeds, times = panels["speeds"], panels["times"]
        speeds.sharex(times)
        _draw_speeds(speeds, observations)
        _draw_times(times, observations)
        for name, target in TARGETS.items():
            _draw_ratios(panels[name], report, name, target)
        for axes in (speeds, times):
            axes.axvline(_change(observations), color=LINE_COLOUR, linewidth=0.8)
        speeds.annotate(
            " quotas change", (_change(observations), 0.97), xycoords=("data", "axes fraction"), va="top"
        )
        times.set_xlabel("seconds since the first quotas were set")


def _change(observations: Observations) -> float:
    """When the quotas changed, in seconds since the first ones were set."""
    first, again = observations.intervals
    return again.since - first.since


def _draw_speeds(axes: Axes, observations: Observations) -> None:
    first, again = observations.intervals
    begin, end = first.since, observations.readings[-1].at
    moments = np.array([begin, again.since, again.since, end]) - begin
    for node, colour in zip(first.quotas, SPEED_COLOURS.values(), strict=True):
        quotas = [first.quotas[node], first.quotas[node], again.quotas[node], again.quotas[node]]
        axes.plot(moments, quotas, color=colour, linestyle=DASHES, linewidth=2.0, alpha=0.6)
        seen = [
            (one.at - begin, speed.learned)
            for one in observations.readings
            for speed in one.speeds(first.quotas if one.at < again.since else again.quotas)
            if speed.node == node and speed.learned is not None
        ]
        axes.plot(*zip(*seen, strict=True), color=colour, linewidth=1.2, label=node)
    axes.set_yscale("log", base=2)
    ticks = sorted(first.quotas.values())
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_title("Learned speed (lines) and hidden quota (dashes) of each node: closer is better")
    axes.set_ylabel("share of a core")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_ylim(0.6 * ticks[0], 1.3 * ticks[-1])  # room for the legend
    axes.legend(frameon=False, ncols=4, loc="lower left")


def _draw_times(axes: Axes, observations: Observations) -> None:
    begin = observations.intervals[0].since
    for name in SCHEDULER_NAMES:
        streams = [one for interval in observations.intervals for one in interval.streams(name)]
        pods = [(one.sent[pod], at) for one in streams for pod, (_, at) in one.ended.items()]
        sent, ended = np.array(pods).reshape(-1, 2).T
        axes.plot(sent - begin, ended - sent, "o", markersize=4, color=COLOURS[name], label=name)
    axes.set_title("Response time of each pod, from its creation to its end: lower is better")
    axes.set_ylabel("seconds")
    axes.set_ylim(bottom=0)
    draw_grid(axes)
    axes.legend(frameon=False)


def _draw_ratios(axes: Axes, report: RealReport, name: str, target: float) -> None:
    """One figure's ratio of each pair, and its mean over the pairs with the interval."""
    for at, part in enumerate((report.first, report.again)):
        found = getattr(part, f"{name}_ratio")
        pairs = [getattr(pair, name) for pair in part.pairs]
        axes.plot([at - 0.15] * len(pairs), pairs, "o", color=LINE_COLOUR, markersize=4)
        ends = [[0.0], [0.0]]
        if found.low is not None and found.high is not None:
            ends = [[found.mean - found.low], [found.high - found.mean]]
        axes.errorbar([at], [found.mean], ends, fmt="s", capsize=5, color=COLOURS[ECLECTUS])
    axes.axhline(1.0, color=COLOURS[KUBE_SCHEDULER], linewidth=0.8)
    axes.axhline(target, color=LINE_COLOUR, linewidth=0.8, linestyle=DASHES)
    axes.set_yscale("log", base=2)
    axes.set_yticks([0.25, 0.5, 1.0, 2.0], ["0.25", "0.5", "1", "2"])
    axes.set_xlim(-0.5, 1.5)
    axes.set_xticks([0, 1], ["first quotas", "after their change"])
    axes.set_title(
        f"{name} of {ECLECTUS} over {KUBE_SCHEDULER}'s: below 1 is better\n"
        "dots: pairs; square: their mean with its 95 % interval; dashes: target"
    )
    draw_grid(axes)


def tables(report: RealReport) -> Iterator[Table | str]:
    """Headings and tables: for the first quotas, then for the changed ones."""
    parts = (("with nothing known", "probes", report.first), ("after the change", "samples", report.again))
    for when, counted, part in parts:
        yield f"\n[bold]Quotas learned {when}[/]: {_duration(part)}. No scheduler is given a quota"
        yield _nodes(part, counted)
        yield "[bold]Response time[/] of pods in real containers (lower is better), and pods by node"
        yield _times(part)
        yield "Eclectus over kube-scheduler in each pair, with the 95 % interval over the pairs"
        yield _ratios(part)
    results = [result for _, _, part in parts for result in part.schedulers.values()]
    yield from _probes([usage for result in results for usage in result.probes])
    yield (
        "[bold]Pods beside a probe[/] and the same pods without one, each asking for all cores of its node; "
        "`later` and `longer` are mean differences of the pairs in seconds, with their 95 % intervals"
    )
    yield _colocation(report.colocation)
    yield f"response time beside a probe over that without one: {report.colocation_ratio.text()}"


def _duration(part: QuotaReport) -> str:
    seconds = part.learned_seconds
    found = "never within a third" if seconds is None else f"within a third after {seconds:.0f} s"
    if part.predicted_seconds is None:
        return found
    return f"{found}, predicted {part.predicted_seconds:.0f} s, target {PREDICTION_FACTOR:g} times that"


def _nodes(part: QuotaReport, counted: str) -> Table:
    table = table_of(["node"], ("quota (hidden)", "learned", "error", counted))
    for one in part.nodes:
        learned = "-" if one.learned is None else f"{one.learned:.2f}"
        error = "-" if one.off is None else f"{round(100 * one.off):+d}%"
        table.add_row(one.node, f"{one.quota:.2f}", learned, error, str(one.samples))
    return table


def _probes(usages: Sequence[ProbeUsage]) -> Iterator[str]:
    """Of all streams together: one stream has too few probes for a share."""
    if not usages:
        return
    share = sum(one.core_seconds for one in usages) / sum(one.spare_core_seconds for one in usages)
    met, unmet = sum(one.met.pods for one in usages), sum(one.unmet.pods for one in usages)
    yield (
        f"[bold]Probes[/] during the streams took {share:.1%} of the spare capacity, target at most "
        f"{MAX_SPARE_SHARE:.0%}. Of {met + unmet} pods that waited for no other pod, {met} met a probe"
    )


def _colocation(trials: Sequence[ColocationTrials]) -> Table:
    heads = ("start, beside", "alone", "later", "run, beside", "alone", "longer")
    table = table_of(["node"], ("quota (hidden)", "pairs", *heads))
    for one in trials:
        both = (one.beside, one.alone)
        starts = (f"{each.start_seconds:.2f} s" if each else "-" for each in both)
        runs = (f"{each.run_seconds:.2f} s" if each else "-" for each in both)
        later, longer = one.start_difference_seconds, one.run_difference_seconds
        cells = (*starts, later.text(), *runs, longer.text())
        table.add_row(one.node, f"{one.quota:.2f}", str(later.pairs), *cells)
    return table


def _times(part: QuotaReport) -> Table:
    nodes = [one.node for one in part.nodes]
    table = table_of(["scheduler"], ("pods", "lost", "failed", "mean", "p99", *nodes))
    for name, one in part.schedulers.items():
        counts = (one.pods, one.lost, one.failed)
        times = (one.response_seconds.mean, one.response_seconds.p99)
        placed = (one.by_node[node] for node in nodes)
        table.add_row(name, *map(str, counts), *(f"{time:.1f} s" for time in times), *map(str, placed))
    return table


def _ratios(part: QuotaReport) -> Table:
    """A row for each figure, with a column for each pair, that says which scheduler was first."""
    pairs = [f"pair {number}, {pair.first} first" for number, pair in enumerate(part.pairs, start=1)]
    table = table_of(["ratio"], (*pairs, "all (95 %)", "target", ""))
    for name, found in (("mean", part.mean_ratio), ("p50", part.p50_ratio), ("p99", part.p99_ratio)):
        cells = (f"{getattr(pair, name):.2f}" for pair in part.pairs)
        table.add_row(name, *cells, found.text(), *_judged(found, TARGETS.get(name)))
    return table


def _judged(found: Interval, target: float | None) -> tuple[str, str]:
    """The target and whether the mean over the pairs meets it; empty without one."""
    if target is None:
        return "", ""
    return f"{target:.2f}", judged(found.mean <= target)


IMAGES = ("pause", "scheduler", "operator", "unit")


def experiment(options: argparse.Namespace) -> Experiment[Plan, RealNodes, Observations, RealReport]:
    """Eclectus against kube-scheduler on four real nodes. Raises MachineError with what the machine lacks."""
    if reason := requirements.unmet_requirement() or archives.unmet_requirement():
        raise MachineError(reason)
    return Experiment(
        real_plan(options.seed, options.pairs, quick=options.quick),
        "real.json",
        "real.png",
        _started,
        lambda real, plan, shown: uvloop.run(_run(real, plan, shown)),
        make_report,
        draw,
        lambda _plan, _observations, report: tables(report),
    )


@contextmanager
def _started(plan: Plan, directory: Path) -> Iterator[RealNodes]:
    """Control plane, real nodes, and the chart with its operator; missing images are built."""
    specs = [NodeSpec(SYSTEM, 1.0, {POOL: "system"})]
    specs += [NodeSpec(name, quota, {POOL: WORKERS}) for name, quota in plan.quotas.items()]
    images = [archives.archive(name) for name in IMAGES]
    with nodes.started(directory, specs, images) as real:
        _kubectl(real)("create", "namespace", NAMESPACE)
        Release(real.plane.kubeconfig).install(VALUES)
        yield real


async def _run(real: RealNodes, plan: Plan, shown: Screen) -> Observations:
    cpu = _kubectl(real).get("node", next(iter(plan.quotas)))["status"]["allocatable"]["cpu"]
    async with Api(read_access(real.plane.kubeconfig)) as api:
        return await Timeline(api, plan, cpu, real.set_quota, shown.say).run()


def _kubectl(real: RealNodes) -> Kubectl:
    return Kubectl(real.plane.binaries, real.plane.kubeconfig)
