"""Panels over simulated time: tasks in the system, slots in use, and the learning error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np

from eclectus.sim.base.results import ComparisonReport, RunResult
from eclectus.sim.report.group_tables import unit_for
from eclectus.sim.report.panels import Axis, Bar, Line, Numbers, Panel, axis_limit, cut_off_note
from eclectus.sim.world.learning_error import ratios

POINTS = 200  # of a curve
SMOOTHED = 2  # points to either side that each point is averaged with
LEVEL_GAP = 4.0  # a profile above the others by this factor is cut off
END_GAP = 1.5  # a profile that ends later than the others by this factor is cut off
GROUPS_MOST = 12  # machine groups in the panel of learned speeds


def load_panels(report: ComparisonReport) -> Iterator[Panel]:
    """Means over runs; a run that has ended counts as 0."""
    x, scale, late = _time_axis(report)
    grid = np.linspace(0.0, x.high, POINTS)

    def lines(read: Callable[[RunResult], list[float]]) -> tuple[Line, ...]:
        found = []
        for profile, runs in enumerate(report.counted_runs()):
            curves = [_interpolated(_middles(run), read(run), grid * scale) for run in runs if run.series]
            if curves:
                found.append(Line(profile, grid, _smooth(np.mean(curves, axis=0))))
        return tuple(found)

    numbers = lines(lambda run: [point.in_system for point in run.series])
    if not numbers:
        return
    peaks = {line.profile: float(line.y.max()) for line in numbers}
    high = axis_limit([*peaks.values()], LEVEL_GAP)
    cut = cut_off_note(report.profiles, {at: f"{peak:,.0f}" for at, peak in peaks.items() if peak > high})
    shades = _unmeasured(report, x.high, scale)
    tasks = Axis("tasks", 0.0, high * 1.05 or 1.0)
    note = "; ".join(dict.fromkeys(filter(None, (cut, late))))
    yield Panel("In the system, waiting or running", x, tasks, numbers, (), shades, note=note)
    used = lines(lambda run: [point.utilisation for point in run.series])
    most = max(1.0, *(float(line.y.max()) for line in used))
    yield Panel("Slots in use", x, Axis("", 0.0, most, percent=True), used, (), shades, note=late)


def _time_axis(report: ComparisonReport) -> tuple[Axis, float, str]:
    ends = {at: max(run.seconds for run in runs) for at, runs in enumerate(report.counted_runs())}
    high = axis_limit([*ends.values()], END_GAP)
    scale, unit = unit_for(high)
    late = cut_off_note(
        report.profiles, {at: f"{end / scale:,.3g} {unit}" for at, end in ends.items() if end > high}
    )
    return Axis(f"simulated time, {unit}", 0.0, high / scale, unit=unit), scale, late


def _middles(run: RunResult) -> list[float]:
    ends = [0.0, *(point.at for point in run.series)]
    return [(before + after) / 2 for before, after in pairwise(ends)]


def _interpolated(times: Sequence[float], values: Sequence[float], grid: Numbers) -> Numbers:
    return np.interp(grid, times, values, right=0.0)


def _smooth(values: Numbers) -> Numbers:
    window = np.ones(2 * SMOOTHED + 1)
    return np.convolve(values, window, "same") / np.convolve(np.ones_like(values), window, "same")


def _unmeasured(report: ComparisonReport, high: float, scale: float) -> tuple[tuple[float, float], ...]:
    """The ranges before and after the measured window, whose ends are means over runs."""
    begin = fmean(run.measured_from for run in report.runs) / scale
    end = fmean(run.measured_until for run in report.runs) / scale
    return tuple((a, b) for a, b in ((0.0, begin), (end, high)) if b - a > 0.01 * high)


# -- learning --------------------------------------------------------------------------------------


def learning_panels(report: ComparisonReport) -> Iterator[Panel]:
    """The learning error over time, and learned over true speeds by machine group at the end."""
    x, scale, _ = _time_axis(report)
    lines = []
    for profile, runs in enumerate(report.counted_runs()):
        curves = [_errors(run) for run in runs if run.learning_errors]
        if curves:
            grid = np.linspace(min(times[0] for times, _ in curves), x.high * scale, POINTS)
            means = np.mean([np.interp(grid, times, errors) for times, errors in curves], axis=0)
            lines.append(Line(profile, grid / scale, means))
    if not any(line.y.any() for line in lines):
        return  # no profile learns, or all have an oracle
    peaks = {line.profile: float(line.y.max()) for line in lines}
    high = axis_limit([*peaks.values()], LEVEL_GAP)
    cut = cut_off_note(report.profiles, {at: f"{peak:.0%}" for at, peak in peaks.items() if peak > high})
    error = Axis("", 0.0, high * 1.05 or 0.01, percent=True)
    shades = _unmeasured(report, x.high, scale)
    yield Panel("Mean error of learned speeds", x, error, tuple(lines), (), shades, note=cut)
    yield _by_machines(report)


def _errors(run: RunResult) -> tuple[list[float], list[float]]:
    """Times, and the mean error over all learned pairs at each."""
    sums: dict[float, list[float]] = {}
    for sample in run.learning_errors:
        total = sums.setdefault(sample.at, [0.0, 0.0])
        total[0] += sample.error * sample.pairs
        total[1] += sample.pairs
    return [*sums], [wrong / cells for wrong, cells in sums.values()]


def _by_machines(report: ComparisonReport) -> Panel:
    """Learned over true speeds of each group of machines."""
    by_profile = []
    for runs in report.counted_runs():
        found: dict[str, list[float]] = {}
        for run in runs:
            for group, some in ratios(run.learned).items():
                found.setdefault(group, []).extend(some)
        by_profile.append(found)
    groups = list(dict.fromkeys(group for found in by_profile for group in found))
    shown = groups[:GROUPS_MOST]
    learners = [profile for profile, found in enumerate(by_profile) if found]
    bars = [
        Bar(profile, shown.index(group) + _beside(learners.index(profile), len(learners)), *_range(some))
        for profile, found in enumerate(by_profile)
        for group, some in found.items()
        if group in shown
    ]
    far = max(2.0, *(max(bar.high, 1 / bar.low) for bar in bars)) * 1.1
    x = Axis("learned / true speed: 1 is correct", 1 / far, far, log=True)
    note = "dot: median, bar: 10th to 90th percentile; speeds are scaled to a common mean"
    if len(groups) > len(shown):
        note += f"; {len(groups) - len(shown)} more groups are left out"
    y = Axis("", len(shown) - 0.5, -0.5, names=tuple(shown))
    title = "Learned over true speeds, at the end"
    return Panel(title, x, y, bars=tuple(bars), reference=1.0, note=note)


def _range(some: list[float]) -> tuple[float, float, float]:
    low, mid, high = np.quantile(some, (0.1, 0.5, 0.9))
    return float(low), float(mid), float(high)


def _beside(at: int, count: int) -> float:
    """Vertical offset of a profile within its group."""
    return 0.7 * ((at + 0.5) / count - 0.5)
