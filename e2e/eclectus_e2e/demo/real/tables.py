"""The tables of the experiment on real nodes."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE
from rich.table import Table

from eclectus_e2e.demo.pod_waits import MAX_SPARE_SHARE, ProbeUsage
from eclectus_e2e.demo.real.colocation import ColocationTrials
from eclectus_e2e.demo.real.report import QuotaReport, RealReport
from eclectus_e2e.demo.speeds import PREDICTION_FACTOR


def tables(report: RealReport) -> Iterator[Table | str]:
    """Headings and tables: for the first quotas, then for the changed ones."""
    parts = (("with nothing known", "probes", report.first), ("after the change", "samples", report.again))
    for when, counted, part in parts:
        yield f"\n[bold]Quotas learned {when}[/]: {_duration(part)}. No scheduler is given a quota"
        yield _nodes(part, counted)
        yield "[bold]Response time[/] of pods in real containers (lower is better), and pods by node"
        yield _times(part)
        yield f"Eclectus: {part.mean_ratio:.2f} of kube-scheduler's mean, {part.p99_ratio:.2f} of its p99"
    results = [result for _, _, part in parts for result in part.schedulers.values()]
    yield from _probes([result.probes for result in results if result.probes])
    yield "[bold]Start beside a probe[/]: the same pods, each asking for all cores of its node"
    yield _colocation(report.colocation)


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
        "pods beside a probe",
        "alone",
        "start, beside",
        "start, alone",
        "run, beside",
        "run, alone",
    )
    for name in heads:
        table.add_column(name, justify="right")
    for one in trials:
        both = (one.beside, one.alone)
        pods = (str(each.pods) if each else "0" for each in both)
        starts = (f"{each.start_seconds:.2f} s" if each else "-" for each in both)
        runs = (f"{each.run_seconds:.2f} s" if each else "-" for each in both)
        table.add_row(one.node, f"{one.quota:.2f}", *pods, *starts, *runs)
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
