"""The panels of a comparison, in the order in which they are drawn, as plain values: axes, lines and bars.

They show distributions of times and, over simulated time, tasks in the system, slots in use and the learning
error. A profile with far larger values than the others is cut off by the axis, and a note says so. Profiles
are numbered as in the report's summaries, so that each has the same colour everywhere.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log, log10
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from eclectus.sim.base.results import ComparisonReport, RunResult, Times
from eclectus.sim.report.tables import groups_of, has_jobs, scale_of, unit_for
from eclectus.sim.world.learning import ratios
from eclectus.sim.world.run_record import bucket_middle

LIGHT = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555", "#000000")
DARK = ("#2f93d6", "#d55e00", "#00b383", "#cc79a7", "#e69f00", "#7cc8f5", "#a0a0a0", "#ffffff")
"""Okabe and Ito's palette, safe for colour-blind readers; brighter on a dark background."""
SOLID_MOST = 4  # profiles with solid lines; the following ones are dashed
DASHES = ((), (6, 3), (2, 2), (8, 3, 2, 3))  # lengths on, off, … in points

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """Label, range and number format of an axis."""

    label: str
    low: float
    high: float
    log: bool = False
    percent: bool = False  # values are shares: 0.5 is written as 50 %
    unit: str = ""  # written after a single value
    names: tuple[str, ...] = ()  # labels at 0, 1, 2, … instead of numbers

    def fraction(self, values: Numbers | float) -> Numbers:
        """Positions along the axis: 0 at the low end, 1 at the high one."""
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log(np.maximum(values, low * 1e-3)), log(low), log(high)
        return np.asarray((values - low) / (high - low))

    def ticks(self) -> list[tuple[float, str]]:
        """Values of the ticks, and their labels."""
        if self.names:
            return [(float(at), name) for at, name in enumerate(self.names)]
        ticks = _log_ticks(self.low, self.high) if self.log else _linear_ticks(self.low, self.high)
        return [(at, f"{at * 100:,.10g} %" if self.percent else f"{at:,.10g}") for at in ticks]


@dataclass(frozen=True)
class Line:
    """One profile's curve."""

    profile: int
    x: Numbers
    y: Numbers


@dataclass(frozen=True)
class Bar:
    """A profile's median and its range from the 10th to the 90th percentile, at height `at`."""

    profile: int
    at: float
    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Panel:
    """One panel of a figure."""

    title: str
    x: Axis
    y: Axis
    lines: tuple[Line, ...] = ()
    bars: tuple[Bar, ...] = ()
    shades: tuple[tuple[float, float], ...] = ()  # ranges of x that are not measured
    reference: float | None = None  # x of a reference line
    note: str = ""  # how to read the panel, and what it cuts off or leaves out

    @property
    def notes(self) -> list[str]:
        """What stands below the panel."""
        return [*(["shaded: not measured"] if self.shades else []), *([self.note] if self.note else [])]


def style(profile: int) -> tuple[int, tuple[int, ...]]:
    """The index of a profile's colour in the palettes, and its dashes."""
    return profile % len(LIGHT), DASHES[profile // SOLID_MOST % len(DASHES)]


def axis_limit(peaks: Sequence[float], gap: float) -> float:
    """The highest peak that is shown in full; peaks more than `gap` times above the next one are cut off.

    At least half of the peaks are always shown, so that one low peak does not cut off all others.
    """
    order = sorted(peaks)
    for at in range(ceil(len(order) / 2), len(order)):
        if order[at] > gap * order[at - 1]:
            return order[at - 1]
    return order[-1]


def _limited(
    report: ComparisonReport, peaks: Mapping[int, float], gap: float, written: Callable[[float], str]
) -> tuple[float, str]:
    """The limit of an axis by the peaks of profiles, and a note on those that it cuts off, empty if none."""
    high = axis_limit([*peaks.values()], gap)
    far = [f"{report.profiles[at]} (to {written(peak)})" for at, peak in peaks.items() if peak > high]
    return high, f"cut off: {', '.join(far)}" if far else ""


def _linear_ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, about `about` of them."""
    least = 0.7 * (high - low) / about
    power = 10.0 ** floor(log10(least))
    step = next(size * power for size in (1, 2, 5, 10) if size * power >= least)
    return [step * at for at in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten; with multiples of 2 and 5 on short axes, and only every n-th on long ones."""
    first, last = floor(log10(low)), ceil(log10(high))
    decades = log10(high / low)
    parts = (1, 2, 5) if decades <= 2.5 else (1,)
    every = max(1, ceil(decades / 6))
    ticks = [part * 10.0**power for power in range(first, last + 1) if power % every == 0 for part in parts]
    return [at for at in ticks if low * (1 - 1e-9) <= at <= high * (1 + 1e-9)]


POINTS = 200  # of a curve
SMOOTHED = 2  # points to either side that each point is averaged with
LEVEL_GAP = 4.0  # a profile above the others by this factor is cut off
END_GAP = 1.5  # a profile that ends later than the others by this factor is cut off
GROUPS_MOST = 12  # in the panel of learned speeds, and in panels of their own


def load_panels(report: ComparisonReport) -> Iterator[Panel]:
    """Means over runs; a run that has ended counts as 0."""
    x, scale, late = _time_axis(report)
    grid = np.linspace(0.0, x.high, POINTS)

    def lines(read: Callable[[RunResult], list[float]]) -> tuple[Line, ...]:
        found = []
        for profile, runs in enumerate(report.counted_runs()):
            curves = [
                np.interp(grid * scale, _middles(run), read(run), right=0.0) for run in runs if run.series
            ]
            if curves:
                found.append(Line(profile, grid, _smooth(np.mean(curves, axis=0))))
        return tuple(found)

    numbers = lines(lambda run: [point.in_system for point in run.series])
    if not numbers:
        return
    peaks = {line.profile: float(line.y.max()) for line in numbers}
    high, cut = _limited(report, peaks, LEVEL_GAP, "{:,.0f}".format)
    shades = _unmeasured(report, x.high, scale)
    tasks = Axis("tasks", 0.0, high * 1.05 or 1.0)
    note = "; ".join(dict.fromkeys(filter(None, (cut, late))))
    yield Panel("In the system, waiting or running", x, tasks, numbers, (), shades, note=note)
    used = lines(lambda run: [point.utilisation for point in run.series])
    most = max(1.0, *(float(line.y.max()) for line in used))
    yield Panel("Slots in use", x, Axis("", 0.0, most, percent=True), used, (), shades, note=late)


def _time_axis(report: ComparisonReport) -> tuple[Axis, float, str]:
    ends = {at: max(run.seconds for run in runs) for at, runs in enumerate(report.counted_runs())}
    scale, unit = unit_for(axis_limit([*ends.values()], END_GAP))
    high, late = _limited(report, ends, END_GAP, lambda end: f"{end / scale:,.3g} {unit}")
    return Axis(f"simulated time, {unit}", 0.0, high / scale, unit=unit), scale, late


def _middles(run: RunResult) -> list[float]:
    ends = [0.0, *(point.at for point in run.series)]
    return [(before + after) / 2 for before, after in pairwise(ends)]


def _smooth(values: Numbers) -> Numbers:
    window = np.ones(2 * SMOOTHED + 1)
    return np.convolve(values, window, "same") / np.convolve(np.ones_like(values), window, "same")


def _unmeasured(report: ComparisonReport, high: float, scale: float) -> tuple[tuple[float, float], ...]:
    """The ranges before and after the measured window, whose ends are means over runs."""
    begin = fmean(run.measured_from for run in report.runs) / scale
    end = fmean(run.measured_until for run in report.runs) / scale
    return tuple((a, b) for a, b in ((0.0, begin), (end, high)) if b - a > 0.01 * high)


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
    high, cut = _limited(report, peaks, LEVEL_GAP, "{:.0%}".format)
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
    bars = []
    for profile, found in enumerate(by_profile):
        for group in (group for group in found if group in shown):
            at = shown.index(group) + 0.7 * ((learners.index(profile) + 0.5) / len(learners) - 0.5)
            bars.append(Bar(profile, at, *map(float, np.quantile(found[group], (0.1, 0.5, 0.9)))))
    far = max(2.0, *(max(bar.high, 1 / bar.low) for bar in bars)) * 1.1
    x = Axis("learned / true speed: 1 is correct", 1 / far, far, log=True)
    note = "dot: median, bar: 10th to 90th percentile; speeds are scaled to a common mean"
    if len(groups) > len(shown):
        note += f"; {len(groups) - len(shown)} more groups are left out"
    y = Axis("", len(shown) - 0.5, -0.5, names=tuple(shown))
    return Panel("Learned over true speeds, at the end", x, y, bars=tuple(bars), reference=1.0, note=note)


SHOWN_LEAST = 1e-4  # least share drawn of a tail: below it the line depends on single tasks
TIMES_GAP = 30.0  # a profile that is slower than the others by this factor is cut off

Sample = Callable[[RunResult], Times | None]


def overall_panels(report: ComparisonReport) -> list[Panel]:
    """The panels of all tasks and jobs, in the order in which they are drawn."""
    if report.shows_allocation:
        return [_allocation_panel(report)]
    times = []
    if _has_times(report, lambda run: run.response):
        times.append(_distribution_panel(report, "Response time of tasks", lambda run: run.response))
        times.append(_tail_panel(report))
    if has_jobs(report) and _has_times(report, lambda run: run.jobs):
        times.append(_distribution_panel(report, "Response time of jobs", lambda run: run.jobs))
    return [*times, *load_panels(report), *learning_panels(report)]


def group_panels(report: ComparisonReport) -> list[Panel]:
    """The distribution of response times in each group: of jobs if they have several tasks, else of tasks."""
    what = "jobs" if has_jobs(report) else "tasks"
    found = []
    for name, label in groups_of(report)[:GROUPS_MOST]:

        def of_group(run: RunResult, name: str = name, label: str = label) -> Times | None:
            group = run.groups.get(name, {}).get(label)
            if group is None:
                return None
            return group.jobs if what == "jobs" else group.response

        if _has_times(report, of_group):
            found.append(_distribution_panel(report, f"Response time of {what}: {label}", of_group))
    return found


def _has_times(report: ComparisonReport, sample: Sample) -> bool:
    """Whether any counted run has such times."""
    return any(times.count for runs in report.counted_runs() for run in runs if (times := sample(run)))


def _distribution_panel(report: ComparisonReport, title: str, sample: Sample) -> Panel:
    """The distribution of times, from the first per cent on."""
    lines = _distributions(report, sample)
    x, note = _times_axis(report, lines, 0.01, 0.999)
    y = Axis("share of tasks or jobs up to this time", 0.0, 1.0, percent=True)
    return Panel(title, x, y, _scaled(report, lines), note=note)


def _tail_panel(report: ComparisonReport) -> Panel:
    lines = _distributions(report, lambda run: run.response)
    x, note = _times_axis(report, lines, 0.5, 1.0 - SHOWN_LEAST)
    above = [Line(line.profile, line.x, 1.0 - line.y) for line in lines]
    y = Axis("share of tasks above this time", SHOWN_LEAST, 1.0, log=True, percent=True)
    return Panel("Tail of the response time of tasks", x, y, _scaled(report, above), note=note)


def _distributions(report: ComparisonReport, sample: Sample) -> list[Line]:
    """Each profile's times in seconds, over all runs, and the share of tasks or jobs up to each time."""
    lines = []
    for profile, runs in enumerate(report.counted_runs()):
        buckets = sum((Counter(times.buckets) for run in runs if (times := sample(run))), Counter[int]())
        if buckets:
            order = sorted(buckets)
            ended = np.cumsum([buckets[bucket] for bucket in order], dtype=float)
            seconds = np.array([bucket_middle(bucket) for bucket in order])
            lines.append(Line(profile, seconds, ended / ended[-1]))
    return lines


def _times_axis(
    report: ComparisonReport, lines: Sequence[Line], first: float, last: float
) -> tuple[Axis, str]:
    """From the least time by which `first` of a profile has ended to the greatest by which `last` has."""
    scale, unit = scale_of(report.summaries)
    reached = {line.profile: _reached(line, last) / scale for line in lines}
    high, far = _limited(report, reached, TIMES_GAP, lambda peak: f"{peak:,.3g} {unit}")
    low = max(min(_reached(line, first) for line in lines) / scale, high * 1e-6)
    return Axis(unit, min(low, high / 2), high * 1.05, log=True, unit=unit), far


def _reached(line: Line, share: float) -> float:
    return float(line.x[np.searchsorted(line.y, share - 1e-12)])


def _scaled(report: ComparisonReport, lines: Sequence[Line]) -> tuple[Line, ...]:
    scale, _ = scale_of(report.summaries)
    return tuple(Line(line.profile, line.x / scale, line.y) for line in lines)


def _allocation_panel(report: ComparisonReport) -> Panel:
    lines = []
    for profile, each in enumerate(report.summaries):
        allocated = np.array([value.mean for value in each.allocation.values()])
        lines.append(Line(profile, np.array([*each.allocation], dtype=float), allocated))
    low, high = min(float(line.x[0]) for line in lines), max(float(line.x[-1]) for line in lines)
    x = Axis("requested, %", low, high)
    y = Axis("allocated, %", 0.0, max(float(line.y.max()) for line in lines) * 1.03)
    return Panel("Allocated share by requested share", x, y, tuple(lines))
