"""The tables of the experiment on scarce nodes: one line for each question, then every group."""

from collections.abc import Iterator
from math import isfinite

from rich.box import SIMPLE
from rich.table import Table

from eclectus_e2e.demo.schedulers import KUBE_SCHEDULER
from eclectus_e2e.demo.stream.groups import CONSTRAINED, FREE, PREFERRING
from eclectus_e2e.demo.stream.report import LoadReport, Report, Result
from eclectus_e2e.demo.stream.tables import busy_warning, faults_table, groups_heading, groups_table

# Row: group and field of its times, both None for the response time of all pods.
ROWS = {
    "constrained pods: mean wait": (CONSTRAINED, "wait_seconds", "mean"),
    "constrained pods: p99 of the wait": (CONSTRAINED, "wait_seconds", "p99"),
    "constrained pods: mean response time": (CONSTRAINED, "response_seconds", "mean"),
    "free pods: mean wait": (FREE, "wait_seconds", "mean"),
    "free pods: mean response time": (FREE, "response_seconds", "mean"),
    "preferring pods: mean response time": (PREFERRING, "response_seconds", "mean"),
}


def tables(report: Report) -> Iterator[Table | str]:
    """The summary, the groups, and what must not happen."""
    level = report.loads[f"{report.load:g}"]
    yield (
        f"\n[bold]Batches on scarce nodes[/], load {report.load:g}, seed {report.seed}: seconds, in brackets "
        "shares of kube-scheduler's; lower is better but for preferences"
    )
    yield _summary(level)
    yield groups_heading(report.load)
    yield groups_table(level)
    yield from busy_warning(report)
    yield "\n[bold]What must not happen[/]" + ("" if report.sound else "[red], and did happen[/]")
    yield faults_table(report)


def _summary(level: LoadReport) -> Table:
    """A row for each figure, a column for each scheduler."""
    table = Table("figure", box=SIMPLE)
    for name in level.schedulers:
        table.add_column(name, justify="right")
    baseline = level.schedulers.get(KUBE_SCHEDULER)
    results = level.schedulers.values()
    for row, place in ROWS.items():
        table.add_row(row, *(_seconds(one, baseline, place) for one in results))
    table.add_row("all pods: mean response time", *(f"{one.response_seconds.mean:.2f}" for one in results))
    met = (one.preferences_met for one in results)
    table.add_row("preferences met", *("-" if share is None else f"{share:.0%}" for share in met))
    return table


def _seconds(result: Result, baseline: Result | None, place: tuple[str, str, str]) -> str:
    own = _figure(result, place)
    if own is None:
        return "-"
    other = _figure(baseline, place) if baseline and baseline is not result else None
    return f"{own:.2f} ({own / other:.2f})" if other and isfinite(other) else f"{own:.2f}"


def _figure(result: Result, place: tuple[str, str, str]) -> float | None:
    group, field, figure = place
    return getattr(getattr(result.groups[group], field), figure) if group in result.groups else None
