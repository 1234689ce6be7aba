"""What the act on real nodes shows at its end."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE
from rich.table import Table

from eclectus_e2e.demo.alarm import PREDICTION_FACTOR
from eclectus_e2e.demo.pod_waits import MAX_SPARE_SHARE, ProbeUsage
from eclectus_e2e.demo.real.colocation import ColocationTrials
from eclectus_e2e.demo.real.report import QuotaReport, RealReport


def tables(report: RealReport) -> Iterator[Table | str]:
    """Headings and tables: of the first quotas, then of the changed ones."""
    halves = (("from nothing", "probes", report.first), ("again, quotas changed", "samples", report.again))
    for words, counted, half in halves:
        yield f"\n[bold]Learned {words}[/]: {_after(half)}. No scheduler is told a quota"
        yield _nodes(half, counted)
        yield "[bold]Response time[/] of pods in real containers, and how many each node ran"
        yield _times(half)
        yield f"Eclectus: {half.mean_ratio:.2f} of kube-scheduler's mean, {half.p99_ratio:.2f} of its p99"
    yield from _probes([one.probes for half in halves for one in half[-1].schedulers.values() if one.probes])
    yield "[bold]Who meets a probe[/]: the same pods, each asking for every core of its node"
    yield _meetings(report.meetings)


def _after(half: QuotaReport) -> str:
    seconds = half.learned_seconds
    found = "never within a third" if seconds is None else f"within a third after {seconds:.0f} s"
    if half.predicted_seconds is None:
        return found
    return f"{found}, predicted {half.predicted_seconds:.0f} s, wanted within {PREDICTION_FACTOR:g} times as long"


def _nodes(half: QuotaReport, counted: str) -> Table:
    table = Table("node", box=SIMPLE)
    for name in ("quota (hidden)", "learned", "off by", counted):
        table.add_column(name, justify="right")
    for one in half.nodes:
        learned = "-" if one.learned is None else f"{one.learned:.2f}"
        off = "-" if one.off is None else f"{round(100 * one.off):+d}%"
        table.add_row(one.node, f"{one.quota:.2f}", learned, off, str(one.samples))
    return table


def _probes(beside: Sequence[ProbeUsage]) -> Iterator[str]:
    """Beside all streams together: in one of them are too few to say what their share is."""
    if not beside:
        return
    share = sum(one.core_seconds for one in beside) / sum(one.spare_core_seconds for one in beside)
    met, unmet = sum(one.met.pods for one in beside), sum(one.unmet.pods for one in beside)
    yield (
        f"[bold]Probes[/] beside real pods took {share:.1%} of what those left, wanted at most "
        f"{MAX_SPARE_SHARE:.0%}. Of {met + unmet} pods for which there was room, {met} met a probe"
    )


def _meetings(found: Sequence[ColocationTrials]) -> Table:
    table = Table("node", box=SIMPLE)
    heads = ("quota (hidden)", "met a probe", "met none", "until running", "without", "then ran", "without")
    for name in heads:
        table.add_column(name, justify="right")
    for one in found:
        both = (one.beside, one.alone)
        pods = (str(each.pods) if each else "0" for each in both)
        starts = (f"{each.start_seconds:.2f} s" if each else "-" for each in both)
        runs = (f"{each.run_seconds:.2f} s" if each else "-" for each in both)
        table.add_row(one.node, f"{one.quota:.2f}", *pods, *starts, *runs)
    return table


def _times(half: QuotaReport) -> Table:
    table = Table("scheduler", box=SIMPLE)
    nodes = [one.node for one in half.nodes]
    for name in ("pods", "lost", "failed", "mean", "p99", *nodes):
        table.add_column(name, justify="right")
    for name, one in half.schedulers.items():
        counts = (one.pods, one.lost, one.failed)
        times = (one.response_seconds.mean, one.response_seconds.p99)
        placed = (one.by_node[node] for node in nodes)
        table.add_row(name, *map(str, counts), *(f"{time:.1f} s" for time in times), *map(str, placed))
    return table
