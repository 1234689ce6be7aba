"""The tables of the experiment on real nodes."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE
from rich.table import Table

from eclectus_e2e.demo.pairs import Interval
from eclectus_e2e.demo.pod_waits import MAX_SPARE_SHARE, ProbeUsage
from eclectus_e2e.demo.real.colocation import ColocationTrials
from eclectus_e2e.demo.real.report import TARGETS, QuotaReport, RealReport
from eclectus_e2e.demo.speeds import PREDICTION_FACTOR


def tables(report: RealReport) -> Iterator[Table | str]:
    """Headings and tables: for the first quotas, then for the changed ones."""
    parts = (("with nothing known", "probes", report.first), ("after the change", "samples", report.again))
    for when, counted, part in parts:
        yield f"\n[bold]Quotas learned {when}[/]: {_duration(part)}. No scheduler is given a quota"
        yield _nodes(part, counted)
        yield "[bold]Response time[/] of pods in real containers (lower is better), and pods by node"
        yield _times(part)
        yield "Eclectus over kube-scheduler in each pair, with the 95 % interval over the pairs"
        yield _ratios(part)
    results = [result for _, _, part in parts for result in part.schedulers.values()]
    yield from _probes([usage for result in results for usage in result.probes])
    yield (
        "[bold]Pods beside a probe[/] and the same pods without one, each asking for all cores of its node; "
        "`later` and `longer` are mean differences of the pairs in seconds, with their 95 % intervals"
    )
    yield _colocation(report.colocation)
    yield f"response time beside a probe over that without one: {report.colocation_ratio.text()}"


def _duration(part: QuotaReport) -> str:
    seconds = part.learned_seconds
    found = "never within a third" if seconds is None else f"within a third after {seconds:.0f} s"
    if part.predicted_seconds is None:
        return found
    return f"{found}, predicted {part.predicted_seconds:.0f} s, target {PREDICTION_FACTOR:g} times that"


def _nodes(part: QuotaReport, counted: str) -> Table:
    table = Table("node", box=SIMPLE)
    for name in ("quota (hidden)", "learned", "error", counted):
        table.add_column(name, justify="right")
    for one in part.nodes:
        learned = "-" if one.learned is None else f"{one.learned:.2f}"
        error = "-" if one.off is None else f"{round(100 * one.off):+d}%"
        table.add_row(one.node, f"{one.quota:.2f}", learned, error, str(one.samples))
    return table


def _probes(usages: Sequence[ProbeUsage]) -> Iterator[str]:
    """Of all streams together: one stream has too few probes for a share."""
    if not usages:
        return
    share = sum(one.core_seconds for one in usages) / sum(one.spare_core_seconds for one in usages)
    met, unmet = sum(one.met.pods for one in usages), sum(one.unmet.pods for one in usages)
    yield (
        f"[bold]Probes[/] during the streams took {share:.1%} of the spare capacity, target at most "
        f"{MAX_SPARE_SHARE:.0%}. Of {met + unmet} pods that waited for no other pod, {met} met a probe"
    )


def _colocation(trials: Sequence[ColocationTrials]) -> Table:
    table = Table("node", box=SIMPLE)
    heads = (
        "quota (hidden)",
        "pairs",
        "start, beside",
        "alone",
        "later",
        "run, beside",
        "alone",
        "longer",
    )
    for name in heads:
        table.add_column(name, justify="right")
    for one in trials:
        both = (one.beside, one.alone)
        starts = (f"{each.start_seconds:.2f} s" if each else "-" for each in both)
        runs = (f"{each.run_seconds:.2f} s" if each else "-" for each in both)
        later, longer = one.start_difference_seconds, one.run_difference_seconds
        cells = (*starts, later.text(), *runs, longer.text())
        table.add_row(one.node, f"{one.quota:.2f}", str(later.pairs), *cells)
    return table


def _times(part: QuotaReport) -> Table:
    table = Table("scheduler", box=SIMPLE)
    nodes = [one.node for one in part.nodes]
    for name in ("pods", "lost", "failed", "mean", "p99", *nodes):
        table.add_column(name, justify="right")
    for name, one in part.schedulers.items():
        counts = (one.pods, one.lost, one.failed)
        times = (one.response_seconds.mean, one.response_seconds.p99)
        placed = (one.by_node[node] for node in nodes)
        table.add_row(name, *map(str, counts), *(f"{time:.1f} s" for time in times), *map(str, placed))
    return table


def _ratios(part: QuotaReport) -> Table:
    """A row for each figure, with a column for each pair, that says which scheduler was first."""
    table = Table("ratio", box=SIMPLE)
    for number, pair in enumerate(part.pairs, start=1):
        table.add_column(f"pair {number}, {pair.first} first", justify="right")
    for name in ("all (95 %)", "target", ""):
        table.add_column(name, justify="right")
    for name, found in (("mean", part.mean_ratio), ("p50", part.p50_ratio), ("p99", part.p99_ratio)):
        cells = (f"{getattr(pair, name):.2f}" for pair in part.pairs)
        table.add_row(name, *cells, found.text(), *_judged(found, TARGETS.get(name)))
    return table


def _judged(found: Interval, target: float | None) -> tuple[str, str]:
    """The target and whether the mean over the pairs meets it; empty without one."""
    if target is None:
        return "", ""
    return f"{target:.2f}", "[green]met[/]" if found.mean <= target else "[yellow]missed[/]"
