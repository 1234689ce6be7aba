"""The picture of the experiment on real nodes. The titles say what is shown and what is better."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eclectus_e2e.demo.real.observations import Observations
from eclectus_e2e.demo.real.plan import Plan
from eclectus_e2e.demo.stream.plots import COLOURS

NODE_COLOURS = ("#d55e00", "#e69f00", "#56b4e9", "#0072b2")  # distinct also with colour blindness and in grey


def draw(plan: Plan, observations: Observations, file: Path) -> None:
    """Write the picture as PNG."""
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(12, 8), layout="constrained", dpi=100)
        speeds, times = figure.subplots(2, 1, sharex=True)
        _speeds(speeds, observations)
        _times(times, observations)
        times.set_xlabel("seconds since the first quotas were set")
        figure.suptitle(f"Real containers on {len(plan.quotas)} real nodes, seed {plan.seed}")
        figure.savefig(file)


def _speeds(axes: Axes, observations: Observations) -> None:
    first, again = observations.intervals
    begin, end = first.since, observations.readings[-1].at
    moments = np.array([begin, again.since, again.since, end]) - begin
    for node, colour in zip(first.quotas, NODE_COLOURS, strict=True):
        quotas = [first.quotas[node], first.quotas[node], again.quotas[node], again.quotas[node]]
        axes.plot(moments, quotas, color=colour, linestyle=(0, (5, 3)), linewidth=2.0, alpha=0.6)
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
    axes.legend(frameon=False, ncols=4)


def _times(axes: Axes, observations: Observations) -> None:
    begin = observations.intervals[0].since
    for name in observations.intervals[0].streams:
        streams = [interval.streams[name] for interval in observations.intervals]
        pods = [(one.sent[pod], at) for one in streams for pod, (_, at) in one.ended.items()]
        sent, ended = np.array(pods).reshape(-1, 2).T
        axes.plot(sent - begin, ended - sent, "o", markersize=4, color=COLOURS[name], label=name)
    axes.axvline(observations.intervals[1].since - begin, color="#555555", linewidth=0.8)
    axes.set_title("Response time of each pod, at the time of its creation: lower is better")
    axes.set_ylabel("seconds from creation to end")
    axes.set_ylim(bottom=0)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False)
