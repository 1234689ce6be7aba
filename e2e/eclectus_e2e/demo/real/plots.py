"""The picture of the experiment on real nodes. The titles say what is shown and what is better."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from eclectus_e2e.demo.pictures import COLOURS, DASHES, LINE_COLOUR, SPEED_COLOURS, draw_grid, picture
from eclectus_e2e.demo.real.observations import Observations
from eclectus_e2e.demo.real.plan import Plan


def draw(plan: Plan, observations: Observations, file: Path) -> None:
    """Write the picture as PNG."""
    title = (
        "Real containers under CPU quotas that no scheduler is given: what is learned, how long pods take\n"
        f"{len(plan.quotas)} real nodes, seed {plan.seed}"
    )
    with picture(file, 12, 8, title) as figure:
        speeds, times = figure.subplots(2, 1, sharex=True)
        _speeds(speeds, observations)
        _times(times, observations)
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
    for name in observations.intervals[0].streams:
        streams = [interval.streams[name] for interval in observations.intervals]
        pods = [(one.sent[pod], at) for one in streams for pod, (_, at) in one.ended.items()]
        sent, ended = np.array(pods).reshape(-1, 2).T
        axes.plot(sent - begin, ended - sent, "o", markersize=4, color=COLOURS[name], label=name)
    axes.set_title("Response time of each pod, from its creation to its end: lower is better")
    axes.set_ylabel("seconds")
    axes.set_ylim(bottom=0)
    draw_grid(axes)
    axes.legend(frameon=False)
