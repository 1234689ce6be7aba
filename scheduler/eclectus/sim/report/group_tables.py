"""These tables show by group the responses, waits and preferences met; the worst group; responses of jobs.

The figures in the cells of all tables are written here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from eclectus.sim.base.results import ComparisonReport, Interval, ProfileSummary, Statistics, TimeStatistics

UNITS = (
    (864_000.0, 86_400.0, "d"),
    (36_000.0, 3600.0, "h"),
    (3600.0, 60.0, "min"),
    (0.1, 1.0, "s"),
    (1e-4, 1e-3, "ms"),
    (0.0, 1e-6, "µs"),
)  # least time in seconds, seconds per unit, name
QUANTITIES = ("mean", "median", "p90", "p99")  # what `times_cells` writes
NO_VALUE = "-"  # if no task or job has ended


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first cell of a row is text, the others are numbers, or names of groups."""

    heads: list[str]
    rows: list[list[str]]


def format_interval(value: Interval, digits: int = 3, scale: float = 1.0) -> str:
    """`1.046 ±0.004`: digits according to the width of the interval."""
    mean = value.mean / scale
    if value.half_width is None:
        return f"{mean:,.0f}" if abs(mean) >= 10**digits else f"{mean:.{digits}g}"
    half = value.half_width / scale
    places = max(0, min(6, 1 - _magnitude(max(half, abs(mean) / 1000) or 1.0)))
    return f"{mean:,.{places}f} ±{half:,.{places}f}"


def optional_cell(value: Interval | None, scale: float = 1.0) -> str:
    """The interval, or `NO_VALUE` if there is none."""
    return NO_VALUE if value is None else format_interval(value, scale=scale)


def times_cells(spread: TimeStatistics | None, scale: float) -> list[str]:
    """A cell for each of QUANTITIES; `scale`: seconds per unit."""
    if spread is None:
        return [NO_VALUE] * 4
    return [
        format_interval(value, scale=scale) for value in (spread.mean, spread.p50, spread.p90, spread.p99)
    ]


def unit_for(seconds: float) -> tuple[float, str]:
    """Seconds per unit, and the name of the unit that suits this time."""
    return next((size, name) for least, size, name in UNITS if seconds >= least)


def scale_of(summaries: Sequence[ProfileSummary]) -> tuple[float, str]:
    """The same for all response times of the comparison."""
    means = [each.all.response.mean.mean for each in summaries if each.all.response is not None]
    return unit_for(min(means, default=1.0))


def _magnitude(value: float) -> int:
    return int(f"{abs(value):e}".partition("e")[2])


ALL = ("", "all")  # the group of all tasks or jobs


def group_tables(report: ComparisonReport) -> Iterator[Table]:
    """Tasks by group and the worst groups, if there are several; jobs, if they have several tasks."""
    groups = groups_of(report)
    if groups:
        yield _tasks_by_group(report, groups)
        yield _worst_groups(report)
    if has_jobs(report):
        heads = [f"response of jobs, {scale_of(report.summaries)[1]}", *QUANTITIES]
        yield _by_group(
            report, heads, [ALL, *groups], lambda figures, scale: times_cells(figures.jobs, scale)
        )


def groups_of(report: ComparisonReport) -> list[tuple[str, str]]:
    """Pairs of grouping and group, without groupings that have only one group."""
    found = {
        (name, label): None
        for each in report.summaries
        for name, some in each.groups.items()
        for label in some
    }
    return [pair for pair in found if sum(pair[0] == name for name, _ in found) > 1]


def statistics_of(each: ProfileSummary, name: str, label: str) -> Statistics | None:
    """The statistics of one group of a profile, if it had such tasks."""
    return each.all if (name, label) == ALL else each.groups.get(name, {}).get(label)


def has_jobs(report: ComparisonReport) -> bool:
    """Whether any job has several tasks."""
    return any(run.jobs.count != run.response.count for run in report.runs)


def _tasks_by_group(report: ComparisonReport, groups: Sequence[tuple[str, str]]) -> Table:
    """Responses, waits, and preferences met if any task has preferences."""
    prefers = any(each.all.met is not None for each in report.summaries)

    def cells(figures: Statistics, scale: float) -> list[str]:
        wait = times_cells(figures.wait, scale)
        met = [optional_cell(figures.met, scale=0.01)] if prefers else []
        return [*times_cells(figures.response, scale), wait[0], wait[-1], *met]

    what = f"response of tasks, {scale_of(report.summaries)[1]}"
    heads = [what, *QUANTITIES, "wait", "wait p99", *(["met, %"] if prefers else [])]
    return _by_group(report, heads, groups, cells)


def _by_group(
    report: ComparisonReport,
    heads: list[str],
    groups: Sequence[tuple[str, str]],
    cells: Callable[[Statistics, float], list[str]],
) -> Table:
    """Statistics by group, and by profile within a group; `cells` gets the seconds per unit of times."""
    scale, _ = scale_of(report.summaries)
    blank = [""] * (len(heads) - 1)
    rows = []
    for name, label in groups:
        rows.append([label, *blank])
        for each in report.summaries:
            figures = statistics_of(each, name, label)
            values = [NO_VALUE] * len(blank) if figures is None else cells(figures, scale)
            rows.append([f"  {each.profile}", *values])
    return Table(heads, rows)


def _worst_groups(report: ComparisonReport) -> Table:
    """Of each grouping the group that is delayed most in proportion to its size, by profile."""
    rows = []
    for name in {name: None for each in report.summaries for name in each.worst}:
        rows.append([name, "", ""])
        for each in report.summaries:
            worst = each.worst.get(name)
            if worst is not None:
                rows.append([f"  {each.profile}", worst.group, format_interval(worst.slowdown)])
    return Table(["slowest group in proportion to size", "group", "slowdown"], rows)
