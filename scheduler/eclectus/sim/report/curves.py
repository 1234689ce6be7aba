"""What is drawn of a report, in which order; and how times are spread.

Axes end where the picture is still worth seeing: a profile that blows up leaves it, and a note says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from eclectus.sim.base.histogram import bucket_middle
from eclectus.sim.base.results import ComparisonReport, RunResult, Times
from eclectus.sim.report.panels import Axis, Line, Panel, axis_limit, cut_off_note
from eclectus.sim.report.table import groups_of, has_jobs, scale_of
from eclectus.sim.report.time_series import learning_panels, load_panels

SHOWN_LEAST = 1e-4  # of a tail: below it single tasks make the line
TIMES_GAP = 30.0  # on an axis of ratios: who is this much slower than the others leaves it
GROUPS_MOST = 12  # pictures, one a group

Sample = Callable[[RunResult], Times | None]


def overall_panels(report: ComparisonReport) -> list[Panel]:
    """All pictures of the whole, in the order in which they are looked at."""
    if report.shows_allocation:
        return [_allocation_panel(report)]
    times = []
    if _has_times(report, lambda run: run.response):
        times = [
            _distribution_panel(report, "Response time of tasks", lambda run: run.response),
            _tail_panel(report),
        ]
    if has_jobs(report) and _has_times(report, lambda run: run.jobs):
        times.append(_distribution_panel(report, "Response time of jobs", lambda run: run.jobs))
    return [*times, *load_panels(report), *learning_panels(report)]


def group_panels(report: ComparisonReport) -> list[Panel]:
    """How times are spread in each group: of jobs where those have several tasks, else of tasks."""
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
    """Whether some run that counts has such times."""
    return any(times.count for runs in report.counted_runs() for run in runs if (times := sample(run)))


# -- times -----------------------------------------------------------------------------------------


def _distribution_panel(report: ComparisonReport, title: str, sample: Sample) -> Panel:
    """From where the first per cent ends, since what is left of it is empty paper."""
    lines = _distributions(report, sample)
    x, note = _times_axis(report, lines, 0.01, 0.999)
    return Panel(title, x, Axis("took no longer", 0.0, 1.0, percent=True), _scaled(report, lines), note=note)


def _tail_panel(report: ComparisonReport) -> Panel:
    lines = _distributions(report, lambda run: run.response)
    x, note = _times_axis(report, lines, 0.5, 1.0 - SHOWN_LEAST)
    above = [Line(line.profile, line.x, 1.0 - line.y) for line in lines]
    y = Axis("took longer", SHOWN_LEAST, 1.0, log=True, percent=True)
    return Panel("Its tail", x, y, _scaled(report, above), note=note)


def _distributions(report: ComparisonReport, sample: Sample) -> list[Line]:
    """Each profile's times in seconds, all runs together, and the share of tasks that took no longer."""
    lines = []
    for profile, runs in enumerate(report.counted_runs()):
        buckets = sum((Counter(times.buckets) for run in runs if (times := sample(run))), Counter[int]())
        if buckets:
            order = sorted(buckets)
            ended = np.cumsum([buckets[bucket] for bucket in order], dtype=float)
            lines.append(
                Line(profile, np.array([bucket_middle(bucket) for bucket in order]), ended / ended[-1])
            )
    return lines


def _times_axis(
    report: ComparisonReport, lines: Sequence[Line], first: float, last: float
) -> tuple[Axis, str]:
    """From the time that this first share takes in some profile to what the last share takes in any."""
    scale, unit = scale_of(report.summaries)
    reached = {line.profile: _reached(line, last) / scale for line in lines}
    high = axis_limit([*reached.values()], TIMES_GAP)
    low = max(min(_reached(line, first) for line in lines) / scale, high * 1e-6)
    far = {at: f"{peak:,.3g} {unit}" for at, peak in reached.items() if peak > high}
    return Axis(unit, min(low, high / 2), high * 1.05, log=True, unit=unit), cut_off_note(
        report.profiles, far
    )


def _reached(line: Line, share: float) -> float:
    return float(line.x[np.searchsorted(line.y, share - 1e-12)])


def _scaled(report: ComparisonReport, lines: Sequence[Line]) -> tuple[Line, ...]:
    scale, _ = scale_of(report.summaries)
    return tuple(Line(line.profile, line.x / scale, line.y) for line in lines)


# -- work that never ends --------------------------------------------------------------------------


def _allocation_panel(report: ComparisonReport) -> Panel:
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
