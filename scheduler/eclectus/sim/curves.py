"""What is drawn of a report: how times are spread, how full it is over time, what has been learned.

Axes end where the picture is still worth seeing: a profile that blows up leaves it, and a note says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np

from eclectus.sim.histogram import middle
from eclectus.sim.lessons import ratios
from eclectus.sim.panels import Axis, Bar, Line, Numbers, Panel, limit
from eclectus.sim.results import Report, Run, Times
from eclectus.sim.table import groups_of, has_jobs, scale_of, unit_for

MOMENTS = 200  # of a curve over time
SMOOTHED = 2  # moments to either side of one that it is averaged with: single arrivals are noise
SHOWN_LEAST = 1e-4  # of a tail: below it single tasks make the line
TIMES_GAP = 30.0  # on an axis of ratios: who is this much slower than the others leaves it
LEVEL_GAP = 4.0  # on an even one: who is this much higher than the others leaves it
END_GAP = 1.5  # who drains this much longer than the others is not waited for
GROUPS_MOST = 12  # pictures, one a group

Sample = Callable[[Run], Times | None]


def panels(report: Report) -> list[Panel]:
    """All pictures of the whole, in the order in which they are looked at."""
    if report.fills:
        return [_held(report)]
    times = []
    if any(run.response.count for run in report.runs):
        times = [_spread(report, "Response time of tasks", lambda run: run.response), _tail(report)]
    if has_jobs(report) and any(run.jobs.count for run in report.runs):
        times.append(_spread(report, "Response time of jobs", lambda run: run.jobs))
    return [*times, *_over_time(report), *_learning(report)]


def group_panels(report: Report) -> list[Panel]:
    """How times are spread in each group: of jobs where those have several tasks, else of tasks."""
    what = "jobs" if has_jobs(report) else "tasks"
    found = []
    for name, label in groups_of(report)[:GROUPS_MOST]:

        def of_group(run: Run, name: str = name, label: str = label) -> Times | None:
            group = run.groups.get(name, {}).get(label)
            if group is None:
                return None
            return group.jobs if what == "jobs" else group.response

        if any((sample := of_group(run)) is not None and sample.count for run in report.runs):
            found.append(_spread(report, f"Response time of {what}: {label}", of_group))
    return found


def runs_of(report: Report) -> list[list[Run]]:
    """The runs that each summary is made of."""
    found = []
    for each in report.summaries:
        runs = [run for run in report.runs if run.profile == each.profile]
        found.append([run for run in runs if run.complete] or runs)
    return found


# -- times -----------------------------------------------------------------------------------------


def _spread(report: Report, title: str, sample: Sample) -> Panel:
    """From where the first per cent ends, since what is left of it is empty paper."""
    lines = _distributions(report, sample)
    x, note = _times_axis(report, lines, 0.01, 0.999)
    return Panel(title, x, Axis("took no longer", 0.0, 1.0, percent=True), _scaled(report, lines), note=note)


def _tail(report: Report) -> Panel:
    lines = _distributions(report, lambda run: run.response)
    x, note = _times_axis(report, lines, 0.5, 1.0 - SHOWN_LEAST)
    above = [Line(line.profile, line.x, 1.0 - line.y) for line in lines]
    y = Axis("took longer", SHOWN_LEAST, 1.0, log=True, percent=True)
    return Panel("Its tail", x, y, _scaled(report, above), note=note)


def _distributions(report: Report, sample: Sample) -> list[Line]:
    """Each profile's times in seconds, all runs together, and the share of tasks that took no longer."""
    lines = []
    for profile, runs in enumerate(runs_of(report)):
        buckets = sum((Counter(times.buckets) for run in runs if (times := sample(run))), Counter[int]())
        if buckets:
            order = sorted(buckets)
            ended = np.cumsum([buckets[bucket] for bucket in order], dtype=float)
            lines.append(Line(profile, np.array([middle(bucket) for bucket in order]), ended / ended[-1]))
    return lines


def _times_axis(report: Report, lines: Sequence[Line], first: float, last: float) -> tuple[Axis, str]:
    """From the time that this first share takes in some profile to what the last share takes in any."""
    scale, unit = scale_of(report.summaries)
    reached = {line.profile: _reached(line, last) / scale for line in lines}
    high = limit([*reached.values()], TIMES_GAP)
    low = max(min(_reached(line, first) for line in lines) / scale, high * 1e-6)
    far = {at: f"{peak:,.3g} {unit}" for at, peak in reached.items() if peak > high}
    return Axis(unit, min(low, high / 2), high * 1.05, log=True, unit=unit), _left_out(report, far)


def _reached(line: Line, share: float) -> float:
    return float(line.x[np.searchsorted(line.y, share - 1e-12)])


def _scaled(report: Report, lines: Sequence[Line]) -> tuple[Line, ...]:
    scale, _ = scale_of(report.summaries)
    return tuple(Line(line.profile, line.x / scale, line.y) for line in lines)


# -- over time -------------------------------------------------------------------------------------


def _over_time(report: Report) -> Iterator[Panel]:
    """Means over runs; who has ended has nothing in the system and uses nothing."""
    x, scale, late = _time_axis(report)
    moments = np.linspace(0.0, x.high, MOMENTS)

    def lines(read: Callable[[Run], list[float]]) -> tuple[Line, ...]:
        found = []
        for profile, runs in enumerate(runs_of(report)):
            curves = [_curve(_middles(run), read(run), moments * scale) for run in runs if run.series]
            if curves:
                found.append(Line(profile, moments, _smooth(np.mean(curves, axis=0))))
        return tuple(found)

    numbers = lines(lambda run: [point.in_system for point in run.series])
    if not numbers:
        return
    peaks = {line.profile: float(line.y.max()) for line in numbers}
    high = limit([*peaks.values()], LEVEL_GAP)
    cut = _left_out(report, {at: f"{peak:,.0f}" for at, peak in peaks.items() if peak > high})
    shades = _unmeasured(report, x.high, scale)
    tasks = Axis("tasks", 0.0, high * 1.05 or 1.0)
    note = "; ".join(dict.fromkeys(filter(None, (cut, late))))
    yield Panel("In the system, waiting or running", x, tasks, numbers, (), shades, note=note)
    used = lines(lambda run: [point.utilisation for point in run.series])
    most = max(1.0, *(float(line.y.max()) for line in used))
    yield Panel("Slots in use", x, Axis("", 0.0, most, percent=True), used, (), shades, note=late)


def _time_axis(report: Report) -> tuple[Axis, float, str]:
    ends = {at: max(run.seconds for run in runs) for at, runs in enumerate(runs_of(report))}
    high = limit([*ends.values()], END_GAP)
    scale, unit = unit_for(high)
    late = _left_out(report, {at: f"{end / scale:,.3g} {unit}" for at, end in ends.items() if end > high})
    return Axis(f"simulated time, {unit}", 0.0, high / scale, unit=unit), scale, late


def _middles(run: Run) -> list[float]:
    ends = [0.0, *(point.at for point in run.series)]
    return [(before + after) / 2 for before, after in pairwise(ends)]


def _curve(times: Sequence[float], values: Sequence[float], moments: Numbers) -> Numbers:
    return np.interp(moments, times, values, right=0.0)


def _smooth(values: Numbers) -> Numbers:
    window = np.ones(2 * SMOOTHED + 1)
    return np.convolve(values, window, "same") / np.convolve(np.ones_like(values), window, "same")


def _unmeasured(report: Report, high: float, scale: float) -> tuple[tuple[float, float], ...]:
    """Before the window and after it, where most runs have begun and ended it."""
    begin = fmean(run.measured_from for run in report.runs) / scale
    end = fmean(run.measured_until for run in report.runs) / scale
    return tuple((a, b) for a, b in ((0.0, begin), (end, high)) if b - a > 0.01 * high)


# -- learning --------------------------------------------------------------------------------------


def _learning(report: Report) -> Iterator[Panel]:
    """How soon, and how well of each group of machines."""
    x, scale, _ = _time_axis(report)
    lines = []
    for profile, runs in enumerate(runs_of(report)):
        curves = [_errors(run) for run in runs if run.lessons]
        if curves:
            moments = np.linspace(min(times[0] for times, _ in curves), x.high * scale, MOMENTS)
            means = np.mean([np.interp(moments, times, errors) for times, errors in curves], axis=0)
            lines.append(Line(profile, moments / scale, means))
    if not any(line.y.any() for line in lines):
        return  # nobody learns, or all are told the truth
    peaks = {line.profile: float(line.y.max()) for line in lines}
    high = limit([*peaks.values()], LEVEL_GAP)
    cut = _left_out(report, {at: f"{peak:.0%}" for at, peak in peaks.items() if peak > high})
    error = Axis("", 0.0, high * 1.05 or 0.01, percent=True)
    shades = _unmeasured(report, x.high, scale)
    yield Panel("Mean error of learned speeds", x, error, tuple(lines), (), shades, note=cut)
    yield _by_machines(report)


def _errors(run: Run) -> tuple[list[float], list[float]]:
    """Moments, and the mean error over all that is known then."""
    sums: dict[float, list[float]] = {}
    for lesson in run.lessons:
        total = sums.setdefault(lesson.at, [0.0, 0.0])
        total[0] += lesson.error * lesson.cells
        total[1] += lesson.cells
    return [*sums], [wrong / cells for wrong, cells in sums.values()]


def _by_machines(report: Report) -> Panel:
    """Learned over true speeds of each group of machines."""
    by_profile = []
    for runs in runs_of(report):
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
    x = Axis("1 is right; dot: median, bar: eight of ten; brought to one scale", 1 / far, far, log=True)
    rest = f"{len(groups) - len(shown)} more groups are left out" if len(groups) > len(shown) else ""
    y = Axis("", len(shown) - 0.5, -0.5, names=tuple(shown))
    title = "Learned over true speeds, when the window closed"
    return Panel(title, x, y, bars=tuple(bars), level=1.0, note=rest)


def _range(some: list[float]) -> tuple[float, float, float]:
    low, mid, high = np.quantile(some, (0.1, 0.5, 0.9))
    return float(low), float(mid), float(high)


def _beside(at: int, count: int) -> float:
    """Profiles one below the other within the room of a group."""
    return 0.7 * ((at + 0.5) / count - 0.5)


# -- work that never ends --------------------------------------------------------------------------


def _held(report: Report) -> Panel:
    lines = [
        Line(profile, np.array([*each.allocation], dtype=float), np.array([value.mean for value in held]))
        for profile, each in enumerate(report.summaries)
        if (held := each.allocation.values())
    ]
    x = Axis(
        "asked for, %", min(float(line.x[0]) for line in lines), max(float(line.x[-1]) for line in lines)
    )
    y = Axis("held, %", 0.0, max(float(line.y.max()) for line in lines) * 1.03)
    return Panel("What is held, by what has been asked for", x, y, tuple(lines))


# -- words -----------------------------------------------------------------------------------------


def _left_out(report: Report, reached: Mapping[int, str]) -> str:
    """Who leaves the picture, and how far."""
    names = (f"{report.summaries[at].profile} (to {far})" for at, far in reached.items())
    return f"beyond the picture: {', '.join(names)}" if reached else ""
