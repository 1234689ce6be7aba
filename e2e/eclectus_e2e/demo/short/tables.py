"""What the short demo prints at the end: one table, one sentence, and what must not happen."""

from collections.abc import Iterator

from rich.box import SIMPLE
from rich.table import Table

from eclectus_e2e.demo.short.report import BETTER, WORSE, Figure, ShortReport
from eclectus_e2e.demo.stream.tables import busy_warning, groups_heading, groups_table

STYLES = {BETTER: "green", WORSE: "red"}


def tables(report: ShortReport) -> Iterator[Table | str]:
    """The table, the sentence, and what must not happen."""
    yield f"\n[bold]Eclectus beside kube-scheduler[/], load {report.load:g}, seed {report.seed}"
    yield _table(report)
    yield groups_heading(report.load)
    yield groups_table(report.loads[f"{report.load:g}"])
    yield f"[bold]{report.sentence}[/]"
    yield from busy_warning(report)
    yield _faults(report)


def _table(report: ShortReport) -> Table:
    table = Table("figure", "better is", box=SIMPLE)
    for name in ("eclectus", "kube-scheduler", "ratio"):
        table.add_column(name, justify="right")
    table.add_column("Eclectus is")
    for one in report.figures:
        values = (_text(one, value) for value in (one.eclectus, one.kube_scheduler))
        verdict = f"[{STYLES.get(one.verdict, 'default')}]{one.verdict}[/]"
        better = "lower" if one.lower_is_better else "higher"
        table.add_row(one.name, better, *values, f"{one.ratio:.2f}", verdict)
    return table


def _text(figure: Figure, value: float) -> str:
    return f"{value:.0%}" if figure.is_share else f"{value:.2f} s"


def _faults(report: ShortReport) -> str:
    """What must not happen, of both schedulers together."""
    results = report.schedulers.values()
    counts = (
        f"{sum(one.lost for one in results)} lost, {sum(one.doubled for one in results)} ran twice, "
        f"{sum(one.overcommitted for one in results)} over-committed, "
        f"{sum(one.violations for one in results)} violations of constraints"
    )
    return f"of {report.pods} pods: {counts if report.sound else f'[red]{counts}[/]'}"
