"""The tables of the experiment on DAG jobs: times, Carbyne beside each other, what must not happen."""

from collections.abc import Iterator

from rich.box import SIMPLE
from rich.table import Table

from eclectus_e2e.demo.dags.report import MUCH_SLOWER, DagReport
from eclectus_e2e.demo.schedulers import CARBYNE
from eclectus_e2e.demo.stream.tables import BUSY_SECONDS


def tables(report: DagReport) -> Iterator[Table | str]:
    """Headings and tables, as rich renders them."""
    yield (
        f"\n[bold]Job completion time[/] of {report.jobs} DAG jobs on {report.nodes} nodes, seed "
        f"{report.seed}: seconds from a job's creation to the end of its last task; lower is better"
    )
    yield _times(report)
    if CARBYNE in report.factors and len(report.factors) > 1:
        yield (
            "\n[bold]Factors[/]: time under the other scheduler over that under Carbyne, of the same jobs; "
            "above 1 Carbyne is faster"
        )
        yield _factors(report)
    late = max(one.late_seconds.p99 for one in report.schedulers.values())
    if late > BUSY_SECONDS:
        problem = f"The machine was busy, jobs were created {late:.1f} s late"
        yield f"[yellow]These figures mean little. {problem}; run it again with nothing else running.[/]"
    yield "\n[bold]What must not happen[/]" + ("" if report.sound else "[red], and did happen[/]")
    yield _faults(report)


def _times(report: DagReport) -> Table:
    table = Table("scheduler", box=SIMPLE)
    for name in ("mean", "median", "p95", "makespan"):
        table.add_column(name, justify="right")
    for name, one in report.schedulers.items():
        times = one.job_seconds
        table.add_row(name, *(f"{each:.1f}" for each in (times.mean, times.p50, times.p95, one.makespan)))
    return table


def _factors(report: DagReport) -> Table:
    table = Table("against", box=SIMPLE)
    for name in ("of the means", "median of jobs", f"jobs below {MUCH_SLOWER:g}"):
        table.add_column(name, justify="right")
    for name, one in report.factors[CARBYNE].items():
        table.add_row(name, f"{one.mean:.2f}", f"{one.median:.2f}", f"{one.much_slower:.0%}")
    return table


def _faults(report: DagReport) -> Table:
    table = Table("scheduler", box=SIMPLE)
    for name in ("tasks", "lost", "ran twice", "over-committed", "before a parent", "created late, p99"):
        table.add_column(name, justify="right")
    for name, one in report.schedulers.items():
        counts = (one.tasks, one.lost, one.doubled, one.overcommitted, one.early)
        late = f"{one.late_seconds.p99 * 1000:.0f} ms"
        table.add_row(name, *map(str, counts), late, style="" if one.sound else "red")
    return table
