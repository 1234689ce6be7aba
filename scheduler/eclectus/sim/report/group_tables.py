"""Tables by group: responses, waits, preferences met; the worst group; responses of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eclectus.sim.base.results import ComparisonReport, ProfileSummary, Statistics
from eclectus.sim.report.cells import (
    NO_VALUE,
    QUANTITIES,
    Table,
    format_interval,
    optional_cell,
    scale_of,
    times_cells,
)

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
