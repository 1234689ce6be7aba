"""The picture of the short demo: four panels, each with a sentence on what it shows and what is better."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from eclectus_e2e.demo.pictures import (
    COLOURS,
    LINE_COLOUR,
    draw_grid,
    draw_speeds,
    draw_swapped_speeds,
    picture,
)
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.short.report import BETTER, EQUAL, WAIT, WORSE, ShortReport
from eclectus_e2e.demo.stream.plan import StreamPlan
from eclectus_e2e.demo.stream.plots import draw_waiting
from eclectus_e2e.demo.stream.report import Run
from eclectus_e2e.demo.workload.pods import pod_name

MEAN_OVER_SECONDS = 5.0
TITLE_CHARACTERS = 130  # of a line
VERDICT_COLOURS = {BETTER: COLOURS[ECLECTUS], WORSE: COLOURS[KUBE_SCHEDULER], EQUAL: "#999999"}
PANELS: list[Any] = [["response", "ratios"], ["waiting", "speeds"]]


def draw(plan: StreamPlan, runs: Sequence[Run], report: ShortReport, file: Path) -> None:
    """Write the picture as PNG, under the report's sentence."""
    with picture(file, 13, 8.5, fill(report.sentence, TITLE_CHARACTERS)) as figure:
        panels = figure.subplot_mosaic(PANELS)
        _response(panels["response"], runs)
        _ratios(panels["ratios"], report)
        draw_waiting(panels["waiting"], runs)
        _speeds(panels["speeds"], plan, runs)
        for name in ("response", "waiting", "speeds"):
            panels[name].axvline(report.changed_seconds, color=LINE_COLOUR, linewidth=0.8)
            spot = (report.changed_seconds, 0.88 if name == "response" else 0.99)  # below the legend
            text = panels[name].annotate(" speeds change", spot, xycoords=("data", "axes fraction"), va="top")
            text.set_bbox({"color": "white", "alpha": 0.7, "pad": 1})
        figure.supxlabel(
            f"{report.nodes} nodes, load {report.load:g}, seed {report.seed}, the same pods to both; "
            "nothing is learned at the beginning",
            fontsize=9,
        )


def _response(axes: Axes, runs: Sequence[Run]) -> None:
    for run in runs:
        at_seconds = {pod_name(one): one.at_seconds for one in run.arrivals}
        steps = defaultdict(list)
        for entry in run.timed():
            step = int(at_seconds[entry.name] // MEAN_OVER_SECONDS)
            steps[step].append(entry.finished - run.sent[entry.name])
        at = [(step + 0.5) * MEAN_OVER_SECONDS for step in sorted(steps)]
        means = [np.mean(steps[step]) for step in sorted(steps)]
        axes.plot(at, means, marker="o", markersize=3, color=COLOURS[run.scheduler], label=run.scheduler)
    axes.set(
        title="Response time, from a pod's creation to its end: lower is better",
        xlabel=f"seconds since the first pod was created; means over {MEAN_OVER_SECONDS:g} s of creations",
        ylabel="seconds",
    )
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])  # room for the legend
    draw_grid(axes)
    axes.legend(frameon=False, ncols=2, loc="upper left")


def _ratios(axes: Axes, report: ShortReport) -> None:
    """The response times of the table as shares of kube-scheduler's."""
    figures = [one for one in report.figures if one.lower_is_better and one.name != WAIT][::-1]
    ratios = [one.ratio for one in figures]
    colours = [VERDICT_COLOURS.get(one.verdict, LINE_COLOUR) for one in figures]
    bars = axes.barh([one.name for one in figures], ratios, color=colours, height=0.6)
    axes.bar_label(bars, fmt=" %.2f")
    axes.axvline(1.0, color=LINE_COLOUR, linewidth=0.8)
    axes.set_xlim(0, 1.15 * max(1.0, *(ratio for ratio in ratios if np.isfinite(ratio))))
    axes.set(
        title="Response times of Eclectus over kube-scheduler's: below 1, Eclectus is faster",
        xlabel="ratio (blue: Eclectus faster; orange: kube-scheduler faster; grey: equal)",
    )


def _speeds(axes: Axes, plan: StreamPlan, runs: Sequence[Run]) -> None:
    """Learned speeds of every node, of the scheduler that learns."""
    snapshots = next(run.snapshots for run in runs if run.scheduler == ECLECTUS)
    at = [one.seconds for one in snapshots]
    learned = [{node.node: node.learned or np.nan for node in one.speeds} for one in snapshots]
    nodes = [(node.speed, [one[node.name] for one in learned]) for node in plan.nodes]
    draw_speeds(axes, at, nodes)
    if plan.perturbation and at:
        draw_swapped_speeds(axes, plan.perturbation.at_seconds, max(at))
    axes.set(
        title="Speeds that Eclectus learned (lines) and true speeds (dashes): closer is better",
        xlabel="seconds since the first pod was created",
    )
    axes.legend(frameon=False, ncols=2, loc="lower left", fontsize=8)
