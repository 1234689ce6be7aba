"""Tables of a comparison: a row per profile, means and Student 95 % intervals over runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from eclectus.sim.base.results import ComparisonReport, Interval, ProfileSummary, RunResult
from eclectus.sim.report.dags import dag_tables
from eclectus.sim.report.group_tables import (
    Table,
    format_interval,
    group_tables,
    optional_cell,
    scale_of,
    times_cells,
)

REQUESTED = (25, 50, 80, 90, 100, 110, 120, 130)  # per cent of capacity: columns of the allocation table


def text_lines(report: ComparisonReport) -> Iterator[str]:
    """The whole comparison as lines of text."""
    if report.about:
        yield report.about
    yield subtitle(report)
    for table in tables(report):
        yield ""
        yield from _columns([table.heads, *table.rows])
    yield from remarks(report.runs)


def subtitle(report: ComparisonReport) -> str:
    """The load, the number of measured tasks, and the meaning of ±."""
    load = ""
    if report.load is not None:
        load = f"load {'' if report.load_is_exact else 'at least '}{report.load:.2f}, "
    counts = [run.tasks if report.shows_allocation else run.response.count for run in report.runs]
    what = "tasks" if report.shows_allocation else "measured tasks"
    runs = max(each.runs for each in report.summaries)
    many = f"mean ± half of the 95 % interval over {runs} runs"
    return f"{load}{fmean(counts):,.0f} {what} a run; {many if runs > 1 else 'one run, so no intervals'}"


def how_to_read(report: ComparisonReport) -> str:
    """What the colours of a picture are, and which way is better."""
    if report.shows_allocation:
        return (
            "each colour is one profile, all profiles got the same pods, and its curve shows the allocated "
            "share of the resource by the requested share; higher is better."
        )
    return (
        "each colour is one profile, all profiles ran the same jobs, and lower is better for response times, "
        "waits, slowdown, tasks in the system and learning error; in a distribution of times the curve "
        "further to the left is better."
    )


def tables(report: ComparisonReport) -> Iterator[Table]:
    """All tasks; then tasks by group, if there are several, and jobs by group, if jobs have several tasks.

    If tasks never end, only the allocation table.
    """
    if report.shows_allocation:
        yield _allocation_table(report)
        return
    yield _overview(report.summaries)
    yield from dag_tables(report.summaries)
    yield from group_tables(report)


def remarks(runs: Sequence[RunResult]) -> Iterator[str]:
    """Notes on incomplete runs and on faults of policies."""
    for run in runs:
        who = f"note: {run.profile}, seed {run.seed}"
        if not run.complete:
            yield f"{who}: stopped after {run.tasks:,} tasks; results cover those that had ended"
        if run.faults:
            yield f"{who}: {run.faults} invalid actions of a policy; first: {run.first_fault}"


def _overview(summaries: Sequence[ProfileSummary]) -> Table:
    scale, unit = scale_of(summaries)
    times = [f"{name}, {unit}" for name in ("response", "median", "p99", "wait")]
    heads = ["profile", *times, "slowdown", "in system", "slots, %"]
    rows = [_row(each, scale) for each in summaries]
    _add_column(heads, rows, "preferences met, %", [each.all.met for each in summaries], scale=0.01)
    _add_column(heads, rows, "probes, %", [each.probe_share for each in summaries], scale=0.01)
    _add_column(heads, rows, "evictions", [each.evictions for each in summaries], scale=1.0)
    return Table(heads, rows)


def _add_column(
    heads: list[str], rows: list[list[str]], head: str, values: Sequence[Interval | None], scale: float
) -> None:
    """A column of the table, if any profile has a value in it."""
    if any(values):
        heads.append(head)
        for row, value in zip(rows, values, strict=True):
            row.append(optional_cell(value, scale))


def _allocation_table(report: ComparisonReport) -> Table:
    shown = [x for x in REQUESTED if all(x in each.allocation for each in report.summaries)]
    rows = []
    for each in report.summaries:
        allocated = (format_interval(each.allocation[x], digits=4) for x in shown)
        rows.append([each.profile, format_interval(each.dropped, digits=6), *allocated])
    return Table(["allocated, %, by requested, %", "dropped", *map(str, shown)], rows)


def _row(each: ProfileSummary, scale: float) -> list[str]:
    response, wait = each.all.response, each.all.wait
    return [
        each.profile,
        *times_cells(response, scale)[:2],
        times_cells(response, scale)[3],
        times_cells(wait, scale)[0],
        optional_cell(each.all.slowdown),
        format_interval(each.in_system_mean),
        format_interval(each.utilisation, scale=0.01),
    ]


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        yield "  ".join(cells).rstrip()
