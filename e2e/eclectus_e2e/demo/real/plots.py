"""The picture of the experiment on real nodes. The titles say what is shown and what is better."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from eclectus_e2e.demo.pictures import COLOURS, DASHES, LINE_COLOUR, SPEED_COLOURS, draw_grid, picture
from eclectus_e2e.demo.real.observations import Observations
from eclectus_e2e.demo.real.plan import SCHEDULER_NAMES, Plan
from eclectus_e2e.demo.real.report import TARGETS, RealReport
from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER

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
        _speeds(speeds, observations)
        _times(times, observations)
        for name, target in TARGETS.items():
            _ratios(panels[name], report, name, target)
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


def _speeds(axes: Axes, observations: Observations) -> None:
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


def _times(axes: Axes, observations: Observations) -> None:
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


def _ratios(axes: Axes, report: RealReport, name: str, target: float) -> None:
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
