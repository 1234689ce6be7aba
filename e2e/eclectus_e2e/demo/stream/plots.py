"""The pictures of stream experiments. The title of each panel says what it shows and what is better."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from eclectus_e2e.demo.pictures import (
    COLOURS,
    LINE_COLOUR,
    draw_grid,
    draw_speeds,
    draw_swapped_speeds,
    picture,
    sums_over_time,
)
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.speeds import TOLERANCE
from eclectus_e2e.demo.stream.plan import StreamPlan
from eclectus_e2e.demo.stream.report import WAIT, Figure, Report, Run, ShortReport
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.pairs import EQUAL, FEW_PAIRS, LOST, WON
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec

STEP_SECONDS = 1.0
PANELS: list[Any] = [["tail", "ratios"], ["speeds", "cores"], ["speeds", "waiting"]]


def draw(report: Report, runs: Sequence[Run], nodes: Sequence[NodeSpec], file: Path) -> None:
    """Write the picture of the main load, with the ratios of every load, as PNG."""
    main = [run for run in runs if run.load == report.load]
    per_second = report.loads[f"{report.load:g}"].pods_per_second
    title = (
        "The same pods to each scheduler, one after another: how long they took, and why\n"
        f"{report.nodes} nodes of hidden speeds 1 : 2 : 4 : 8, load {report.load:g}, "
        f"{per_second:.0f} pods a second, seed {report.seed}"
    )
    with picture(file, 13, 10, title) as figure:
        panels = figure.subplot_mosaic(PANELS, height_ratios=(2, 1, 1))
        panels["waiting"].sharex(panels["cores"])
        _tail(panels["tail"], main)
        _ratios(panels["ratios"], report)
        _speeds(panels["speeds"], report)
        _cores(panels["cores"], main, sum(float(node.allocatable["cpu"]) for node in nodes))
        draw_waiting(panels["waiting"], main)


def _tail(axes: Axes, runs: Sequence[Run]) -> None:
    axes.set(
        title="Response time of pods: a curve further left is better",
        xlabel="seconds from a pod's creation to the end of its work",
        ylabel="share of pods that take longer",
    )
    for run in runs:
        seconds = sorted(pod.response_seconds for pod in run.timed())
        longer = 1 - np.arange(1, len(seconds) + 1) / (len(seconds) + 1)
        axes.step(seconds, longer, where="post", color=COLOURS[run.scheduler], label=run.scheduler)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    axes.set_xlim(left=0)
    draw_grid(axes)
    axes.legend(frameon=False)


def _ratios(axes: Axes, report: Report) -> None:
    axes.set(
        title=f"Response time of {ECLECTUS} over {KUBE_SCHEDULER}'s: below 1 is better",
        xlabel="load",
        ylabel="ratio",
    )
    ratios = {
        name: level.ratios[ECLECTUS] for name, level in report.loads.items() if ECLECTUS in level.ratios
    }
    for shift, (field, colour) in enumerate((("mean", "#0072b2"), ("p95", "#56b4e9"), ("p99", "#003f66"))):
        heights = [getattr(ratio, field) for ratio in ratios.values()]
        places = np.arange(len(heights)) + (shift - 1) * 0.26
        bars = axes.bar(places, heights, width=0.24, color=colour, label=field)
        axes.bar_label(bars, fmt="%.2f", fontsize=8)
    axes.axhline(1.0, color=COLOURS[KUBE_SCHEDULER], linewidth=0.8)
    axes.set_xticks(range(len(ratios)), list(ratios))
    axes.set_ylim(0, max(1.3, 1.2 * axes.get_ylim()[1]))  # room for the legend
    axes.legend(frameon=False, ncols=3, loc="upper left")


def _speeds(axes: Axes, report: Report) -> None:
    axes.set(
        title="Learned speed of each node: closer to the diagonal is better",
        xlabel="true speed",
        ylabel="learned speed",
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    learned = [one.learning for one in report.schedulers.values() if one.learning]
    if not learned:
        axes.text(0.5, 0.5, "no scheduler learned speeds", transform=axes.transAxes, ha="center")
        return
    nodes = [node for node in learned[0].nodes if node.learned is not None]
    true = np.array([node.true for node in nodes])
    ends = np.array([true.min() / 1.5, true.max() * 1.5])
    within = (ends * (1 - TOLERANCE), ends * (1 + TOLERANCE))
    axes.fill_between(ends, *within, color="#e8f1f8", label="error of at most a third")
    axes.plot(ends, ends, color="#999999", linewidth=0.8)
    # Points of one speed stand side by side, so that none hides another.
    aside = np.array([0.12 * (at % 7 - 3) / 3 for at in range(len(nodes))])
    speeds = [node.learned or 0.0 for node in nodes]
    axes.scatter(true * 2**aside, speeds, s=18, color=COLOURS[ECLECTUS], zorder=3)
    ticks = sorted({node.true for node in nodes})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    draw_grid(axes)
    axes.legend(frameon=False, loc="upper left")


def _cores(axes: Axes, runs: Sequence[Run], cores: float) -> None:
    axes.set(
        title="Cores in use: lower is better, because faster nodes did the same work",
        ylabel="share of all cores",
    )
    for run in runs:
        millicores = {pod_name(one): one.kind.cpu_millicores for one in run.arrivals}
        ran, begin = [entry for entry in run.entries if entry.started], min(run.sent.values())
        started, ended = ([getattr(entry, name) - begin for entry in ran] for name in ("started", "finished"))
        at, used = sums_over_time(
            started, ended, [millicores[entry.name] / 1000 / cores for entry in ran], STEP_SECONDS
        )
        axes.plot(at, used, color=COLOURS[run.scheduler], label=run.scheduler)
    axes.set_ylim(0, 1.05)
    _warm_up(axes, runs)


def draw_waiting(axes: Axes, runs: Sequence[Run]) -> None:
    """The pods that wait over time under each scheduler, means over its runs."""
    axes.set(
        title="Pods created that do not run yet: lower is better",
        xlabel="seconds since the first pod was created",
        ylabel="pods waiting",
    )
    for name in dict.fromkeys(run.scheduler for run in runs):
        of_one = [run for run in runs if run.scheduler == name]
        waits = [
            (run.sent[entry.name] - begin, entry.started - begin)
            for run in of_one
            for begin in [min(run.sent.values())]
            for entry in run.entries
            if entry.started
        ]
        sent, started = ([each[side] for each in waits] for side in (0, 1))
        at, waiting = sums_over_time(sent, started, [1 / len(of_one)] * len(waits), STEP_SECONDS)
        axes.plot(at, waiting, color=COLOURS[name], linewidth=0.9, label=name)
    axes.set_ylim(bottom=0)
    _warm_up(axes, runs)


def _warm_up(axes: Axes, runs: Sequence[Run]) -> None:
    draw_grid(axes)
    if warm_seconds := runs[0].warm_seconds:
        axes.axvspan(0, warm_seconds, color="#f2f2f2")
        axes.text(
            warm_seconds / 2,
            0.92,
            "not timed",
            ha="center",
            color="#777777",
            transform=axes.get_xaxis_transform(),
        )


MEAN_OVER_SECONDS = 5.0
TITLE_CHARACTERS = 130  # of a line
VERDICT_COLOURS = {WON: COLOURS[ECLECTUS], LOST: COLOURS[KUBE_SCHEDULER], EQUAL: "#999999"}
UNDECIDED_COLOUR = "#dddddd"
SHORT_PANELS: list[Any] = [["response", "ratios"], ["waiting", "speeds"]]


def draw_short(plan: StreamPlan, runs: Sequence[Run], report: ShortReport, file: Path) -> None:
    """Write the picture of the first load as PNG, under its sentence."""
    compared = report.compared[f"{report.load:g}"]
    main = [run for run in runs if run.load == report.load]
    with picture(file, 13, 8.5, fill(compared.sentence, TITLE_CHARACTERS)) as figure:
        panels = figure.subplot_mosaic(SHORT_PANELS)
        _response(panels["response"], main)
        _short_ratios(panels["ratios"], compared.figures)
        draw_waiting(panels["waiting"], main)
        _speeds_over_time(panels["speeds"], plan, main)
        for name in ("response", "waiting", "speeds"):
            panels[name].axvline(report.changed_seconds, color=LINE_COLOUR, linewidth=0.8)
            spot = (report.changed_seconds, 0.88 if name == "response" else 0.99)  # below the legend
            text = panels[name].annotate(" speeds change", spot, xycoords=("data", "axes fraction"), va="top")
            text.set_bbox({"color": "white", "alpha": 0.7, "pad": 1})
        figure.supxlabel(
            f"{report.nodes} nodes, load {report.load:g}, seed {report.seed}, "
            f"pairs of runs with the same pods: {len(main) // 2}; nothing is learned at the beginning",
            fontsize=9,
        )


def _response(axes: Axes, runs: Sequence[Run]) -> None:
    for name in dict.fromkeys(run.scheduler for run in runs):
        steps = defaultdict(list)
        for pod in (pod for run in runs if run.scheduler == name for pod in run.timed()):
            steps[int(pod.arrival.at_seconds // MEAN_OVER_SECONDS)].append(pod.response_seconds)
        at = [(step + 0.5) * MEAN_OVER_SECONDS for step in sorted(steps)]
        means = [np.mean(steps[step]) for step in sorted(steps)]
        axes.plot(at, means, marker="o", markersize=3, color=COLOURS[name], label=name)
    axes.set(
        title="Response time, from a pod's creation to its end: lower is better",
        xlabel=f"seconds since the first pod was created; means over {MEAN_OVER_SECONDS:g} s of creations",
        ylabel="seconds",
    )
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])  # room for the legend
    draw_grid(axes)
    axes.legend(frameon=False, ncols=2, loc="upper left")


def _short_ratios(axes: Axes, figures: Sequence[Figure]) -> None:
    """The response times of the table as shares of kube-scheduler's, with their intervals."""
    shown = [one for one in figures if not one.is_share and one.name != WAIT][::-1]
    means = [one.ratio.mean for one in shown]
    ends = np.array([_ends(one) for one in shown])
    bars = axes.barh(
        [one.name for one in shown],
        means,
        xerr=np.abs(ends.T - means),
        color=[VERDICT_COLOURS.get(one.verdict, UNDECIDED_COLOUR) for one in shown],
        ecolor=LINE_COLOUR,
        height=0.6,
    )
    axes.bar_label(bars, [f" {one.ratio.text()}" for one in shown])
    axes.axvline(1.0, color=LINE_COLOUR, linewidth=0.8)
    axes.set_xlim(0, 1.5 * np.nanmax([1.0, *ends[:, 1]]))  # room for the labels
    axes.set(
        title="Response times of Eclectus over kube-scheduler's: below 1, Eclectus is faster",
        xlabel="ratio in pairs, 95 % (blue: won, orange: lost, grey: equal, pale: too few pairs)",
    )


def _ends(figure: Figure) -> tuple[float, float]:
    """The interval as it is drawn: of too few pairs it would hide those of the other figures."""
    found = figure.ratio
    if figure.verdict == FEW_PAIRS or found.low is None or found.high is None:
        return found.mean, found.mean
    return found.low, found.high


def _speeds_over_time(axes: Axes, plan: StreamPlan, runs: Sequence[Run]) -> None:
    """Learned speeds of every node in the first run of the scheduler that learns."""
    snapshots = next(run.snapshots for run in runs if run.scheduler == ECLECTUS)
    at = [one.seconds for one in snapshots]
    learned = [{node.node: node.learned or np.nan for node in one.speeds} for one in snapshots]
    nodes = [(node.speed, [one[node.name] for one in learned]) for node in plan.nodes]
    draw_speeds(axes, at, nodes)
    if plan.perturbation and at:
        draw_swapped_speeds(axes, plan.perturbation.at_seconds, max(at))
    axes.set(
        title="Speeds learned in pair 1 (lines) and true speeds (dashes): closer is better",
        xlabel="seconds since the first pod was created",
    )
    axes.legend(frameon=False, ncols=2, loc="lower left", fontsize=8)
