"""Pictures of a comparison: how times are spread, their tail, how full it is, what was learned.

Where nothing ever ends there are no times, and there is one picture: what is held, by what was asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from eclectus.core.errors import EclectusError, SettingsError
from eclectus.sim.histogram import middle
from eclectus.sim.results import Report, Run
from eclectus.sim.table import scale_of, unit_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#000000")
"""Okabe and Ito's palette: eyes that confuse red and green tell these apart."""
DASHES = ("-", "--", "-.", ":")
KINDS = (".png", ".svg", ".pdf")
SMOOTHED = 3  # points to either side of one that it is averaged with
SHOWN_LEAST = 1e-4  # of a tail: below it single tasks make the line


def require(file: Path) -> None:
    """Raise before anything runs if it cannot be drawn in the end."""
    if file.suffix not in KINDS:
        raise SettingsError(str(file), f"a plot's name ends in one of {', '.join(KINDS)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise EclectusError(
            "plots need matplotlib: pip install 'eclectus[sim]', or leave --plot out"
        ) from error


def draw(report: Report, file: Path) -> None:
    """Write the picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8), layout="constrained")
    FigureCanvasAgg(figure)
    load = "" if report.load is None else f" (load {report.load:.2f})"
    figure.suptitle(f"{(report.about or report.scenario).rstrip('.')}{load}", fontsize=13)
    pictures = [_allocation] if report.fills else [_spread, _tail, _queue, _learned]
    side = 1 if report.fills else 2
    every = figure.subplots(side, side, squeeze=False).ravel().tolist()
    for axes, picture in zip(every, pictures, strict=True):
        picture(axes, report)
        axes.grid(visible=True, alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5), frameon=False)
    figure.savefig(file, dpi=130)


def _groups(report: Report) -> Iterator[tuple[str, Sequence[Run], str, str]]:
    """Profile, its runs, its colour, its dashes."""
    for at, each in enumerate(report.summaries):
        runs = [run for run in report.runs if run.profile == each.profile]
        yield each.profile, runs, COLOURS[at % len(COLOURS)], DASHES[at // len(COLOURS) % len(DASHES)]


def _above(runs: Sequence[Run], scale: float) -> tuple[list[float], list[float]]:
    """Response times, and the share of tasks that took longer."""
    buckets = sum((Counter(run.response.buckets) for run in runs), Counter[int]())
    order = sorted(buckets)
    total = max(buckets.total(), 1)
    ended = accumulate(buckets[bucket] for bucket in order)
    return [middle(bucket) / scale for bucket in order], [1.0 - count / total for count in ended]


def _unit(report: Report) -> tuple[float, str]:
    return scale_of(report.summaries)


def _spread(axes: Axes, report: Report) -> None:
    scale, unit = _unit(report)
    for profile, runs, colour, dashes in _groups(report):
        times, above = _above(runs, scale)
        axes.plot(times, [1.0 - share for share in above], dashes, color=colour, label=profile, linewidth=1.8)
    axes.set(
        title="Response time: share of tasks that took no longer", xlabel=unit, ylabel="share", xscale="log"
    )
    axes.set_xlim(left=_low(report) / scale)
    axes.set_ylim(0, 1.01)


def _low(report: Report) -> float:
    """Where the first per cent ends: what is left of it is empty paper."""
    firsts = []
    for run in report.runs:
        seen = accumulate(run.response.buckets.values())
        pairs = zip(run.response.buckets, seen, strict=True)
        firsts += [middle(bucket) for bucket, count in pairs if count >= 0.01 * run.response.count][:1]
    return min(firsts, default=1e-3) or 1e-9


def _tail(axes: Axes, report: Report) -> None:
    scale, unit = _unit(report)
    for _, runs, colour, dashes in _groups(report):
        times, above = _above(runs, scale)
        axes.plot(times, above, dashes, color=colour, linewidth=1.8)
    axes.set(title="Its tail: share of tasks that took longer", xlabel=unit, ylabel="share", yscale="log")
    axes.set_ylim(SHOWN_LEAST, 1)
    axes.set_xlim(0, _high(report) / scale)


def _high(report: Report) -> float:
    """The longest time that is no single task's fate in any profile."""
    return max(run.response.p999 for run in report.runs) * 1.1 or 1.0


def _queue(axes: Axes, report: Report) -> None:
    """Mean over runs, smoothed over a few points: single arrivals and ends are noise."""
    scale, unit = unit_for(max(run.seconds for run in report.runs))
    for _, runs, colour, dashes in _groups(report):
        times = [point.at / scale for point in min((run.series for run in runs), key=len)]
        means = [fmean(run.series[at].in_system for run in runs) for at in range(len(times))]
        smooth = [fmean(means[max(at - SMOOTHED, 0) : at + SMOOTHED + 1]) for at in range(len(means))]
        axes.plot(times, smooth, dashes, color=colour, linewidth=1.6)
    axes.set(title="Tasks in the system, waiting or running, over time", xlabel=unit, ylabel="tasks")
    axes.set_ylim(bottom=0)


def _allocation(axes: Axes, report: Report) -> None:
    """Mean over runs."""
    for at, each in enumerate(report.summaries):
        means = [interval.mean for interval in each.allocation.values()]
        colour, dashes = COLOURS[at % len(COLOURS)], DASHES[at // len(COLOURS) % len(DASHES)]
        axes.plot([*each.allocation], means, dashes, color=colour, label=each.profile, linewidth=1.8)
    axes.set(title="What is held, by what has been asked for", xlabel="asked for, %", ylabel="held, %")
    axes.set_ylim(bottom=0)


def _learned(axes: Axes, report: Report) -> None:
    """Rates over their means, so that only what placement goes by is compared; first seed of each profile."""
    most, count = 0.0, len(report.summaries)
    for at, (_, runs, colour, _dashes) in enumerate(_groups(report)):
        cells = [cell for cell in runs[0].learned if cell.true > 0]
        if cells:
            true, found = [cell.true for cell in cells], [cell.learned for cell in cells]
            scale = sum(true) / sum(found)
            beside = 1.0 + 0.015 * (at - (count - 1) / 2)  # profiles side by side, not one upon the other
            axes.scatter(
                [beside * rate for rate in true],
                [rate * scale for rate in found],
                s=14,
                color=colour,
                alpha=0.45,
                linewidths=0,
            )
            most = max(most, *true, *(rate * scale for rate in found))
    if most:
        axes.plot([0, most], [0, most], color="#888888", linewidth=0.8, zorder=0)
    else:
        axes.text(0.5, 0.5, "no profile learns", ha="center", va="center", transform=axes.transAxes)
    axes.set(
        title="Speeds at the end: learned against true",
        xlabel="true, tasks/s in one slot",
        ylabel="learned, brought to scale",
    )
