"""The picture: response times and their tail, what was learned, who waits and runs when, and the ratios."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from eclectus_e2e.demo.speeds import TOLERANCE
from eclectus_e2e.demo.stream.report import ECLECTUS, KUBE_SCHEDULER, Report, Run
from eclectus_e2e.demo.workload.pods import pod_name
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec

COLOURS = {  # told apart by everybody
    ECLECTUS: "#0072b2",
    KUBE_SCHEDULER: "#d55e00",
    "eclectus-uniform": "#999999",
    "eclectus-pot": "#009e73",
    "eclectus-least-allocated": "#cc79a7",
}
STEP_SECONDS = 1.0

Floats = NDArray[np.float64]


def draw(report: Report, runs: Sequence[Run], nodes: Sequence[NodeSpec], file: Path) -> None:
    """Write the picture as PNG."""
    main = [run for run in runs if run.load == report.load]
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(12, 8), layout="constrained", dpi=120)
        axes = figure.subplots(2, 2)
        _tail(axes[0, 0], main)
        _speeds(axes[0, 1], report)
        _usage(axes[1, 0], main, sum(float(node.allocatable["cpu"]) for node in nodes))
        _ratios(axes[1, 1], report)
        figure.suptitle(
            f"{report.nodes} nodes of hidden speeds 1 : 2 : 4 : 8, load {report.load:g}, "
            f"{report.loads[f'{report.load:g}'].pods_per_second:.0f} pods a second, seed {report.seed}"
        )
        figure.savefig(file)


def _tail(axes: Axes, runs: Sequence[Run]) -> None:
    axes.set(
        title="Response time", xlabel="seconds from creation to end", ylabel="share of pods that take longer"
    )
    for run in runs:
        seconds = sorted(run.response_seconds(run.timed()))
        longer = 1 - np.arange(1, len(seconds) + 1) / (len(seconds) + 1)
        axes.step(seconds, longer, where="post", color=COLOURS[run.scheduler], label=run.scheduler)
    axes.set_yscale("log")
    axes.set_xlim(left=0)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False)


def _speeds(axes: Axes, report: Report) -> None:
    axes.set(title="Speeds of the nodes", xlabel="true speed", ylabel="learned speed")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    learned = [one for one in report.schedulers.values() if one.learning]
    if not learned or not learned[0].learning:
        axes.text(0.5, 0.5, "nobody learned", transform=axes.transAxes, ha="center")
        return
    nodes = [node for node in learned[0].learning.nodes if node.learned is not None]
    true = np.array([node.true for node in nodes])
    ends = np.array([true.min() / 1.5, true.max() * 1.5])
    axes.fill_between(
        ends, ends * (1 - TOLERANCE), ends * (1 + TOLERANCE), color="#e8f1f8", label="within a third"
    )
    axes.plot(ends, ends, color="#999999", linewidth=0.8)
    # Side by side, so that nodes of one speed do not hide one another.
    aside = np.array([0.12 * (at % 7 - 3) / 3 for at in range(len(nodes))])
    axes.scatter(
        true * 2**aside, [node.learned or 0.0 for node in nodes], s=18, color=COLOURS[ECLECTUS], zorder=3
    )
    ticks = sorted({node.true for node in nodes})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.legend(frameon=False, loc="upper left")


def _usage(axes: Axes, runs: Sequence[Run], cores: float) -> None:
    axes.set(title="Cores at work and pods waiting", xlabel="seconds", ylabel="share of all cores")
    waiting = axes.twinx()
    waiting.set_ylabel("pods waiting (thin)")
    for run in runs:
        millicores = {pod_name(one): one.kind.cpu_millicores for one in run.arrivals}
        ran = [entry for entry in run.entries if entry.started]
        begin = min(run.sent.values())
        taken = [millicores[entry.name] / 1000 / cores for entry in ran]
        started, ended = ([getattr(entry, name) - begin for entry in ran] for name in ("started", "finished"))
        sent = [run.sent[entry.name] - begin for entry in ran]
        colour = COLOURS[run.scheduler]
        at, busy = _level(started, ended, taken)
        axes.plot(at, busy, color=colour, label=run.scheduler)
        at, queue = _level(sent, started, [1.0] * len(ran))
        waiting.plot(at, queue, color=colour, linewidth=0.7, alpha=0.7)
    axes.set_ylim(0, 1.05)
    waiting.set_ylim(bottom=0)
    waiting.spines["right"].set_visible(True)
    axes.axvspan(0, runs[0].warm_seconds, color="#f2f2f2")
    axes.text(runs[0].warm_seconds / 2, 1.0, "warm-up", ha="center", color="#777777")
    axes.grid(color="#dddddd", linewidth=0.6)


def _level(begins: Sequence[float], ends: Sequence[float], amounts: Sequence[float]) -> tuple[Floats, Floats]:
    """Times, and the sum of the amounts present: averaged over steps, so that the eye can follow."""
    edges = np.arange(0.0, max(ends) + STEP_SECONDS, STEP_SECONDS)
    overlap = np.zeros(len(edges) - 1)
    for begin, end, amount in zip(begins, ends, amounts, strict=True):
        first, last = int(begin / STEP_SECONDS), int(end / STEP_SECONDS)
        overlap[first : last + 1] += amount * STEP_SECONDS
        overlap[first] -= amount * (begin - edges[first])
        overlap[last] -= amount * (edges[last + 1] - end)
    return edges[:-1] + STEP_SECONDS / 2, overlap / STEP_SECONDS


def _ratios(axes: Axes, report: Report) -> None:
    axes.set(
        title=f"Response time as a share of {KUBE_SCHEDULER}'s", xlabel="load", ylabel="below 1 is better"
    )
    loads = [name for name, stage in report.loads.items() if stage.ratios]
    for shift, (field, colour) in enumerate((("mean", "#0072b2"), ("p95", "#56b4e9"), ("p99", "#003f66"))):
        heights = [
            getattr(report.loads[name].ratios[ECLECTUS], field)
            for name in loads
            if ECLECTUS in report.loads[name].ratios
        ]
        places = np.arange(len(heights)) + (shift - 1) * 0.26
        bars = axes.bar(places, heights, width=0.24, color=colour, label=field)
        axes.bar_label(bars, fmt="%.2f", fontsize=8)
    axes.axhline(1.0, color="#d55e00", linewidth=0.8)
    axes.set_xticks(range(len(loads)), loads)
    axes.set_ylim(0, max(1.3, 1.2 * axes.get_ylim()[1]))  # room for the legend
    axes.legend(frameon=False, ncols=3, loc="upper left")
