"""The tables of stream experiments: response times, learned speeds, and what must not happen."""

from collections.abc import Iterator, Sequence
from math import isfinite
from statistics import fmean

from rich.table import Table

from eclectus_e2e.demo.schedulers import ECLECTUS, KUBE_SCHEDULER
from eclectus_e2e.demo.stream.report import (
    Comparison,
    Figure,
    GroupTimes,
    Learning,
    LoadReport,
    Report,
    Result,
    RunReport,
    ShortReport,
    Summary,
    ratio,
)
from eclectus_e2e.demo.tables import faults_heading, lateness_warning, table_of
from eclectus_e2e.pairs import LOST, WON
from eclectus_e2e.usage import QUIET_CORES


def tables(report: Report) -> Iterator[Table | str]:
    """Headings and tables, as rich renders them."""
    yield "\n[bold]Response time in seconds[/] (in brackets: as a share of kube-scheduler's; lower is better)"
    yield _times(report)
    yield groups_heading(report.load)
    yield groups_table(report.loads[f"{report.load:g}"])
    ours = report.schedulers.get(ECLECTUS)
    if ours and ours.learning:
        share = f"{ours.learning.within_third:.0%} of {report.nodes} nodes within a third of the truth"
        yield f"\n[bold]Learned speeds[/] at load {report.load:g}: {share}"
        yield _learning(ours.learning)
    yield from busy_warning(report)
    yield faults_heading(report.sound)
    yield faults_table(report)


def _times(report: Report) -> Table:
    figures = (*Summary.__struct_fields__, "start p50", "preferences met")
    table = table_of(["load", "scheduler"], figures)
    for level in report.loads.values():
        for name, result in level.schedulers.items():
            table.add_row(f"{level.load:g}", name, *_cells(level, name, result))
        table.add_section()
    return table


def _cells(level: LoadReport, name: str, result: Result) -> Iterator[str]:
    ratio = level.ratios.get(name)
    for field in Summary.__struct_fields__:
        beside = f" ({getattr(ratio, field):.2f})" if ratio else ""
        yield f"{getattr(result.response_seconds, field):.2f}{beside}"
    yield f"{result.start_seconds.p50:.3f}"
    yield "-" if result.preferences_met is None else f"{result.preferences_met:.0%}"


def _learning(learning: Learning) -> Table:
    table = table_of(["true speed"], learning.error_by_speed)
    errors = learning.error_by_speed.values()
    table.add_row("mean error", *("-" if error is None else f"{error:.0%}" for error in errors))
    return table


def busy_warning(report: Report) -> Iterator[str]:
    """Where the load generator could not keep its schedule, or other processes used the machine."""
    late = max(one.late_seconds.p99 for level in report.loads.values() for one in level.schedulers.values())
    yield from lateness_warning(late, "pods were sent")
    used = [run.strangers_cores for level in report.loads.values() for run in level.runs]
    if busy := sum(cores > QUIET_CORES for cores in used):
        yield f"[yellow]Other processes used up to {max(used):.1f} cores, in {busy} of {len(used)} runs.[/]"


def faults_table(report: Report) -> Table:
    """What must not happen, of every scheduler at every load, and how late pods were sent."""
    counted = ("pods", "lost", "ran twice", "over-committed", "violations", "sent late, p99")
    table = table_of(["load", "scheduler"], counted)
    for level in report.loads.values():
        for name, one in level.schedulers.items():
            counts = (one.pods, one.lost, one.doubled, one.overcommitted, one.violations)
            late = f"{one.late_seconds.p99 * 1000:.0f} ms"
            table.add_row(f"{level.load:g}", name, *map(str, counts), late, style="" if one.sound else "red")
    return table


def groups_heading(load: float) -> str:
    """What stands above `groups_table`."""
    return (
        f"\n[bold]By what pods demand of their node[/], load {load:g}: seconds, in brackets shares of "
        "kube-scheduler's; lower is better. The wait is from creation to start"
    )


def groups_table(level: LoadReport) -> Table:
    """A row for each group and scheduler: pods without demands, then preferences, then hard constraints."""
    table = table_of(["group", "scheduler"], ("pods", "mean", "p99", "wait mean", "wait p99"))
    baseline = level.schedulers.get(KUBE_SCHEDULER)
    for group in dict.fromkeys(name for result in level.schedulers.values() for name in result.groups):
        for name, result in level.schedulers.items():
            if group in result.groups:
                other = baseline.groups.get(group) if baseline and result is not baseline else None
                table.add_row(group, name, *_group_cells(result.groups[group], other))
        table.add_section()
    return table


def _group_cells(times: GroupTimes, baseline: GroupTimes | None) -> Iterator[str]:
    yield str(times.pods)
    for field in ("response_seconds", "wait_seconds"):
        shares = ratio(getattr(times, field), getattr(baseline, field)) if baseline else None
        for figure in ("mean", "p99"):
            beside = f" ({getattr(shares, figure):.2f})" if shares else ""
            yield f"{getattr(getattr(times, field), figure):.2f}{beside}"


STYLES = {WON: "green", LOST: "red"}


def short_tables(report: ShortReport) -> Iterator[Table | str]:
    """For each load the figures, the pairs, the groups and the sentence; then what must not happen."""
    for name, level in report.loads.items():
        compared = report.compared[name]
        yield f"\n[bold]Eclectus beside kube-scheduler[/], load {name}, seed {report.seed}"
        yield _figures(compared)
        yield (
            "[bold]Pairs[/]: mean response time, and how many cores processes that are not of the demo used "
            "meanwhile"
        )
        yield _pairs(level)
        yield groups_heading(level.load)
        yield groups_table(level)
        yield f"[bold]{compared.sentence}[/]"
    yield from busy_warning(report)
    yield _faults(report)


def _figures(compared: Comparison) -> Table:
    table = table_of(["figure", "better is"], ("eclectus", "kube-scheduler", "ratio within pairs (95 %)"))
    table.add_column("Eclectus")
    for one in compared.figures:
        values = (_text(one, value) for value in (one.eclectus, one.kube_scheduler))
        verdict = f"[{STYLES.get(one.verdict, 'default')}]{one.verdict}[/]"
        table.add_row(one.name, "higher" if one.is_share else "lower", *values, one.ratio.text(), verdict)
    return table


def _text(figure: Figure, value: float) -> str:
    if not isfinite(value):
        return "-"
    return f"{value:.0%}" if figure.is_share else f"{value:.2f} s"


def _pairs(level: LoadReport) -> Table:
    """A row for each pair, and one of means: of the ratios the geometric one."""
    both = (ECLECTUS, KUBE_SCHEDULER)
    table = table_of(["pair", "first"], (*both, "ratio", *(f"others' cores, {name}" for name in both)))
    for pair in sorted({run.pair for run in level.runs}):
        runs = {run.scheduler: run for run in level.runs if run.pair == pair}
        share = ratio(*(runs[name].response_seconds for name in both))
        halves = [[runs[name]] for name in both]
        table.add_row(str(pair + 1), next(iter(runs)), *_pair_cells(halves, share))
    table.add_section()
    halves = [[run for run in level.runs if run.scheduler == name] for name in both]
    table.add_row("mean", "", *_pair_cells(halves, level.ratios[ECLECTUS]))
    return table


def _pair_cells(halves: Sequence[Sequence[RunReport]], share: Summary) -> Iterator[str]:
    """Means of both halves: response times, their ratio, and the cores of others, where many in red."""
    for runs in halves:
        yield f"{fmean(run.response_seconds.mean for run in runs):.2f} s"
    yield f"{share.mean:.2f}"
    for cores in (fmean(run.strangers_cores for run in runs) for runs in halves):
        yield f"[red]{cores:.2f}[/]" if cores > QUIET_CORES else f"{cores:.2f}"


def _faults(report: ShortReport) -> str:
    """What must not happen, of all runs together."""
    results = [one for level in report.loads.values() for one in level.schedulers.values()]
    counts = (
        f"{sum(one.lost for one in results)} lost, {sum(one.doubled for one in results)} ran twice, "
        f"{sum(one.overcommitted for one in results)} over-committed, "
        f"{sum(one.violations for one in results)} violations of constraints"
    )
    return f"of {report.pods} pods: {counts if report.sound else f'[red]{counts}[/]'}"
