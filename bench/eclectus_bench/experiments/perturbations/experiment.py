"""The perturbation experiment: Eclectus alone, while speeds are swapped and a node freezes and thaws."""

import argparse
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from rich.box import SIMPLE
from rich.table import Table

from eclectus_bench.experiments.perturbations.observations import (
    LEARNED_SHARE,
    Observations,
    node_speeds,
    share_within_third,
)
from eclectus_bench.experiments.perturbations.plan import IDLE, Plan, Settings, make_plan, quick_settings
from eclectus_bench.experiments.perturbations.report import Intervals, PerturbationReport, make_report
from eclectus_bench.experiments.perturbations.timeline import run
from eclectus_e2e.demo.environment import Environment, started
from eclectus_e2e.demo.experiment import Experiment
from eclectus_e2e.demo.pictures import (
    DASHES,
    LINE_COLOUR,
    LOWEST_SPEED_SHOWN,
    SPEED_COLOURS,
    draw_speeds,
    draw_swapped_speeds,
    picture,
    scale_speeds,
)
from eclectus_e2e.demo.speeds import NodeSpeed
from eclectus_e2e.demo.tables import judged
from eclectus_e2e.demo.workload.mixed import SPEEDS

FROZEN_COLOUR, IDLE_COLOUR = "#cc79a7", "#009e73"
EVENTS = {  # event: its text above the picture, and on which side of its line
    "swap": ("speeds swapped", "left"),
    "freeze": ("node freezes", "left"),
    "resend": ("declared dead", "right"),
    "thaw": ("node thaws", "left"),
}


class _Series:
    """The observations as series over time; `at` in seconds since the first pod."""

    def __init__(self, plan: Plan, observations: Observations) -> None:
        self.plan = plan
        self.seen = observations
        self.intervals = Intervals(plan, observations)
        self.at = [self.since_begin(one.at) for one in observations.readings]
        self.speeds = [node_speeds(one, self.intervals.truth) for one in observations.readings]

    def since_begin(self, at: float) -> float:
        return at - self.seen.sent.began

    def event(self, name: str) -> float:
        return self.since_begin(self.seen.events[name])

    def of(self, node: str) -> list[NodeSpeed]:
        place = self.intervals.truth.nodes.index(node)
        return [one[place] for one in self.speeds]


def draw(plan: Plan, observations: Observations, report: PerturbationReport, file: Path) -> None:
    """Write the picture as PNG."""
    series = _Series(plan, observations)
    title = (
        "Eclectus while speeds change: learned speeds should soon follow true ones, and few pods wait\n"
        f"{report.nodes} nodes, load {report.load:g}, seed {report.seed}"
    )
    with picture(file, 12, 11, title) as figure:
        panels = figure.subplots(4, 1, height_ratios=(3, 2.2, 1.2, 1), sharex=True)
        for axes, drawing in zip(panels, (_workers, _special_nodes, _learned, _waiting), strict=True):
            drawing(axes, series)
            for name in EVENTS:
                axes.axvline(series.event(name), color=LINE_COLOUR, linewidth=0.8)
        _event_names(panels[0], series)
        panels[-1].set_xlabel("seconds since the first pod was created")


def _event_names(axes: Axes, series: _Series) -> None:
    for name, (text, side) in EVENTS.items():
        height = 0.985 if side == "left" else 0.935  # "declared dead" is written to the left of its line
        spot = (series.event(name), height)
        axes.annotate(f" {text} ", spot, xycoords=("data", "axes fraction"), ha=side, va="top", fontsize=8)


def _workers(axes: Axes, series: _Series) -> None:
    """Every node that takes real pods, but for the one that freezes."""
    others = [node for node in series.plan.layout.nodes if node.name not in (IDLE, series.seen.frozen)]
    learned = [(node.speed, [one.learned or np.nan for one in series.of(node.name)]) for node in others]
    draw_speeds(axes, series.at, learned)
    draw_swapped_speeds(axes, series.event("swap"), series.at[-1])
    axes.set_title("Nodes at work, learned speed (lines) and true speed (dashes): closer is better")
    axes.legend(frameon=False, ncols=2, loc="lower right", fontsize=8)


def _special_nodes(axes: Axes, series: _Series) -> None:
    """The node that freezes and the idle one, with every probe that succeeded there."""
    frozen = series.seen.frozen
    for node, colour, text in ((frozen, FROZEN_COLOUR, "freezes"), (IDLE, IDLE_COLOUR, "is only probed")):
        speeds = series.of(node)
        true = [max(one.true, LOWEST_SPEED_SHOWN) for one in speeds]
        axes.step(series.at, true, where="post", color=colour, linestyle=DASHES, linewidth=2.0, alpha=0.6)
        states = [one.state(node) for one in series.seen.readings]
        learned = [_learned_or_dead(one, state) for one, state in zip(speeds, states, strict=True)]
        axes.plot(series.at, learned, color=colour, linewidth=1.4, label=f"the node that {text}")
        probes = (one for one in series.intervals.probes if one.node == node and one.outcome == "succeeded")
        ends = [series.since_begin(one.finished) for one in probes]
        axes.plot(ends, [LOWEST_SPEED_SHOWN] * len(ends), "|", color=colour, markersize=9)
    scale_speeds(axes)
    axes.set_title(
        "The node that freezes and one that is only probed (strokes: probes that ended): closer is better"
    )
    axes.legend(frameon=False, ncols=2, loc="upper left", fontsize=8)


def _learned_or_dead(speed: NodeSpeed, state: str) -> float:
    if state == "dead":
        return LOWEST_SPEED_SHOWN
    return np.nan if speed.learned is None else speed.learned


def _learned(axes: Axes, series: _Series) -> None:
    """The share of learned pairs in each interval, of the pairs that are judged at its end."""
    events, intervals = series.seen.events, series.intervals
    bounds = (series.seen.sent.began, events["swap"], events["freeze"], events["end"])
    for since, until in pairwise(bounds):
        pairs, inside = dict.fromkeys(intervals.judged(until), 1), intervals.readings(since, until)
        share = [share_within_third(one, pairs, intervals.truth) for one in inside]
        axes.plot([series.since_begin(one.at) for one in inside], share, color=SPEED_COLOURS[SPEEDS[-1]])
    axes.axhline(LEARNED_SHARE, color=LINE_COLOUR, linewidth=0.7, linestyle=":")
    swap = series.event("swap")
    predicted = swap + series.plan.prediction.recovery
    axes.axvspan(swap, predicted, color="#fff3d6", zorder=0)
    axes.text(predicted, 0.3, " predicted recovery (shaded)", fontsize=8, color="#8a6d1d")
    axes.set(ylim=(0, 1.05), ylabel="share of pairs")
    axes.set_title(
        f"Pairs of node and class whose speed is learned within a third: higher is better, "
        f"target {LEARNED_SHARE:.0%} (dots)"
    )


def _waiting(axes: Axes, series: _Series) -> None:
    waiting = [series.intervals.waiting.at(one.at) for one in series.seen.readings]
    axes.plot(series.at, waiting, color=LINE_COLOUR, linewidth=0.9)
    axes.set(ylabel="pods waiting", title="Pods created that do not run yet: lower is better")
    axes.set_ylim(bottom=0)


def experiment(
    options: argparse.Namespace,
) -> Experiment[Plan, Environment, Observations, PerturbationReport]:
    """Eight nodes at work and an idle one, by default; the operator probes three of them."""
    return perturbations(quick_settings(options.seed) if options.quick else Settings(seed=options.seed))


def perturbations(settings: Settings) -> Experiment[Plan, Environment, Observations, PerturbationReport]:
    """The experiment that these settings give, with the chart's operator."""
    return Experiment(
        make_plan(settings),
        "perturbations.json",
        "perturbations.png",
        lambda plan, directory: started(directory, plan.layout.nodes, values=_values(settings.learn)),
        run,
        make_report,
        draw,
        lambda _plan, _observations, report: tables(report),
    )


def tables(report: PerturbationReport) -> Iterator[Table | str]:
    """Every target with what was measured, and what must not happen."""
    yield (
        f"\n[bold]Perturbations[/]: {report.pods} pods on {report.nodes} nodes at load {report.load:g}; "
        "speeds swapped, one node frozen and thawed, one only probed"
    )
    table = Table("", "measured", "target", "", box=SIMPLE)
    for one in report.wanted:
        verdict = judged(one.met)
        table.add_row(one.what, one.found, one.wanted, verdict)
    yield table
    counts = (
        f"{report.lost} lost, {report.doubled} ran twice, {report.overcommitted} over-committed, "
        f"{report.violations} violations; {report.sent_again} stood still and were sent again"
    )
    yield f"What must not happen: {counts if report.sound else f'[red]{counts}[/]'}"


def _values(learn: Mapping[str, float]) -> dict[str, Any]:
    """The chart's values: the operator enabled, and the settings of the learner that differ.

    What was learned is written to NodeProfiles every two seconds, because the experiment is short.
    """
    settings = {_camel(name): value for name, value in learn.items()}
    config = {"learn": settings, "nodeProfiles": {"interval": "2s"}}
    return {"operator": {"enabled": True}, "config": config}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
