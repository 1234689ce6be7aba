"""The panels of a comparison, in the order in which they are drawn, and the distributions of times.

A profile with far larger values than the others is cut off by the axis, and a note says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from eclectus.sim.base.histogram import bucket_middle
from eclectus.sim.base.results import ComparisonReport, RunResult, Times
from eclectus.sim.report.group_tables import groups_of, has_jobs, scale_of
from eclectus.sim.report.panels import Axis, Line, Panel, axis_limit, cut_off_note
from eclectus.sim.report.time_series import learning_panels, load_panels

SHOWN_LEAST = 1e-4  # least share drawn of a tail: below it the line depends on single tasks
TIMES_GAP = 30.0  # a profile that is slower than the others by this factor is cut off
GROUPS_MOST = 12  # panels of single groups

Sample = Callable[[RunResult], Times | None]


def overall_panels(report: ComparisonReport) -> list[Panel]:
    """The panels of all tasks and jobs, in the order in which they are drawn."""
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


# -- times -----------------------------------------------------------------------------------------


def _distribution_panel(report: ComparisonReport, title: str, sample: Sample) -> Panel:
    """The distribution of times, from the first per cent on."""
    lines = _distributions(report, sample)
    x, note = _times_axis(report, lines, 0.01, 0.999)
    return Panel(
        title,
        x,
        Axis("share of tasks or jobs up to this time", 0.0, 1.0, percent=True),
        _scaled(report, lines),
        note=note,
    )


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
            lines.append(
                Line(profile, np.array([bucket_middle(bucket) for bucket in order]), ended / ended[-1])
            )
    return lines


def _times_axis(
    report: ComparisonReport, lines: Sequence[Line], first: float, last: float
) -> tuple[Axis, str]:
    """From the least time by which `first` of a profile has ended to the greatest by which `last` has."""
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


# -- tasks that never end --------------------------------------------------------------------------


def _allocation_panel(report: ComparisonReport) -> Panel:
    lines = [
        Line(
            profile, np.array([*each.allocation], dtype=float), np.array([value.mean for value in allocated])
        )
        for profile, each in enumerate(report.summaries)
        if (allocated := each.allocation.values())
    ]
    x = Axis(
        "requested, %", min(float(line.x[0]) for line in lines), max(float(line.x[-1]) for line in lines)
    )
    y = Axis("allocated, %", 0.0, max(float(line.y.max()) for line in lines) * 1.03)
    return Panel("Allocated share by requested share", x, y, tuple(lines))
