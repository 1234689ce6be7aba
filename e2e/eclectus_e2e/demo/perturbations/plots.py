"""The picture of the second act: what was believed against what was true, and what it cost."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from eclectus_e2e.demo.perturbations.intervals import Intervals
from eclectus_e2e.demo.perturbations.plan import IDLE, Layout, Settings
from eclectus_e2e.demo.perturbations.report import PerturbationReport
from eclectus_e2e.demo.perturbations.timeline import Observations
from eclectus_e2e.demo.perturbations.truth import LEARNED_SHARE, node_speeds, share_within_third
from eclectus_e2e.demo.workload.mixed import SPEEDS, swapped_speed
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec

# By speed before the swap, the slowest first: told apart by everybody, also in grey.
COLOURS = dict(zip(SPEEDS, ("#d55e00", "#e69f00", "#56b4e9", "#0072b2"), strict=True))
FROZEN_COLOUR, IDLE_COLOUR, TRUTH_COLOUR = "#cc79a7", "#009e73", "#555555"
DASHES = (0, (5, 3))
MARKS = {"swap": "swap", "freeze": "frost", "ended": "given up", "thaw": "thaw"}
SHOWN_LEAST = 0.3  # what is slower, or stands still, is drawn at the edge


def draw(found: PerturbationReport, noted: Observations, plan: Settings, cast: Layout, file: Path) -> None:
    """Write the picture as PNG."""
    story = Intervals(noted, cast, plan.mix.classes)
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(12, 9), layout="constrained", dpi=100)
        top, middle, bottom = figure.subplots(3, 1, height_ratios=(3, 2, 1.3), sharex=True)
        _speeds(top, noted, story, cast.nodes, cast.frozen)
        _single(middle, noted, story, cast.frozen)
        _health(bottom, noted, story, found)
        for axes in (top, middle, bottom):
            _marks(axes, noted)
        for name, words in MARKS.items():
            spot = (noted.marks[name] - noted.sent.began, 1.01)
            top.annotate(
                words,
                spot,
                xycoords=("data", "axes fraction"),
                ha="right" if name == "ended" else "left",
                fontsize=8,
            )
        bottom.set_xlabel("seconds")
        figure.suptitle(
            f"Act two: {found.nodes} nodes, load {found.load:g}. Speed at computing, as learned (lines) "
            "and true (dashes)"
        )
        figure.savefig(file)


def _speeds(
    axes: Axes, noted: Observations, story: Intervals, nodes: Sequence[NodeSpec], frozen: str
) -> None:
    """Every node that takes real work."""
    began, known = noted.sent.began, [node_speeds(one, story.truth) for one in noted.readings]
    at = [one.at - began for one in noted.readings]
    for place, node in enumerate(story.truth.nodes):
        speed = next(one.speed for one in nodes if one.name == node)
        if node not in (IDLE, frozen):
            learned = [one[place].learned or np.nan for one in known]
            axes.plot(at, learned, color=COLOURS[speed], linewidth=1.1, alpha=0.85)
    swap, end = noted.marks["swap"] - began, at[-1]
    for speed in SPEEDS:
        after = swapped_speed(speed)
        axes.plot(
            [0, swap, swap, end],
            [speed, speed, after, after],
            color=COLOURS[speed],
            linestyle=DASHES,
            linewidth=2.0,
            alpha=0.6,
            label=f"{speed:g}, then {after:g}",
        )
    _speed_axis(axes, "speed of the others")
    axes.legend(frameon=False, ncols=4, loc="lower right", fontsize=8)


def _single(axes: Axes, noted: Observations, story: Intervals, frozen: str) -> None:
    """The node that freezes and the one that is only probed, with every probe that ended there."""
    began, places = noted.sent.began, story.truth.nodes
    known = [node_speeds(one, story.truth) for one in noted.readings]
    at = [one.at - began for one in noted.readings]
    for node, colour, words in ((frozen, FROZEN_COLOUR, "freezes"), (IDLE, IDLE_COLOUR, "is only probed")):
        place = places.index(node)
        true = [max(one[place].true, SHOWN_LEAST) for one in known]
        axes.step(at, true, where="post", color=colour, linestyle=DASHES, linewidth=2.0, alpha=0.6)
        states = [one.state(node) for one in noted.readings]
        learned = [_believed(one[place].learned, state) for one, state in zip(known, states, strict=True)]
        axes.plot(at, learned, color=colour, linewidth=1.4, label=f"the node that {words}")
        there = [one for one in story.probes if one.node == node and one.outcome == "succeeded"]
        ends = [one.finished - began for one in there]
        axes.plot(ends, [SHOWN_LEAST] * len(ends), "|", color=colour, markersize=9)
    _speed_axis(axes, "speed; strokes: probes")
    axes.legend(frameon=False, ncols=2, loc="upper left", fontsize=8)


def _believed(learned: float | None, state: str) -> float:
    if state == "dead":
        return SHOWN_LEAST
    return np.nan if learned is None else learned


def _health(axes: Axes, noted: Observations, story: Intervals, found: PerturbationReport) -> None:
    """Cells that are right, and pods that wait."""
    began, marks = noted.sent.began, noted.marks
    spells = ((began, marks["swap"]), (marks["swap"], marks["freeze"]), (marks["freeze"], marks["over"]))
    for since, until in spells:
        cells = dict.fromkeys(story.pairs(until), 1)
        inside = [one for one in noted.readings if since <= one.at <= until]
        share = [share_within_third(one, cells, story.truth) for one in inside]
        axes.plot([one.at - began for one in inside], share, color=COLOURS[SPEEDS[-1]])
    axes.axhline(LEARNED_SHARE, color=TRUTH_COLOUR, linewidth=0.7, linestyle=":")
    predicted = marks["swap"] - began + found.recovered.predicted_seconds
    axes.axvspan(marks["swap"] - began, predicted, color="#fff3d6", zorder=0)
    axes.text(predicted, 0.3, " recovery as predicted", fontsize=8, color="#8a6d1d")
    axes.set(ylim=(0, 1.05), ylabel="cells within 1/3")
    waiting = axes.twinx()
    waiting.spines["right"].set_visible(True)
    at, queue = zip(*((one.at - began, story.waiting.at(one.at)) for one in noted.readings), strict=True)
    waiting.plot(at, queue, color=TRUTH_COLOUR, linewidth=0.7)
    waiting.set_ylabel("pods waiting (thin)")
    waiting.set_ylim(bottom=0)


def _speed_axis(axes: Axes, title: str) -> None:
    axes.set_yscale("log", base=2)
    axes.set_ylim(SHOWN_LEAST * 0.9, 2 * SPEEDS[-1])
    axes.set_yticks(SPEEDS, [f"{speed:g}" for speed in SPEEDS])
    axes.set_ylabel(title)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)


def _marks(axes: Axes, noted: Observations) -> None:
    for name in MARKS:
        axes.axvline(noted.marks[name] - noted.sent.began, color=TRUTH_COLOUR, linewidth=0.8)
