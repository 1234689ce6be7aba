"""What the act on real nodes shows at its end."""

from collections.abc import Iterator, Mapping, Sequence

from rich.box import SIMPLE
from rich.table import Table

from eclectus_e2e.demo.alarm import WANTED
from eclectus_e2e.demo.waits import SPARE_MOST, Probes, Starts

from .report import Half, RealReport


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


def _after(half: Half) -> str:
    seconds = half.learned_seconds
    found = "never within a third" if seconds is None else f"within a third after {seconds:.0f} s"
    if half.predicted_seconds is None:
        return found
    return f"{found}, predicted {half.predicted_seconds:.0f} s, wanted within {WANTED:g} times as long"


def _nodes(half: Half, counted: str) -> Table:
    table = Table("node", box=SIMPLE)
    for name in ("quota (hidden)", "learned", "off by", counted):
        table.add_column(name, justify="right")
    for one in half.nodes:
        learned = "-" if one.learned is None else f"{one.learned:.2f}"
        off = "-" if one.off is None else f"{round(100 * one.off):+d}%"
        table.add_row(one.node, f"{one.quota:.2f}", learned, off, str(one.samples))
    return table


def _probes(beside: Sequence[Probes]) -> Iterator[Table | str]:
    """Beside all streams together: in one of them are too few to say what their share is."""
    if not beside:
        return
    share = sum(one.core_seconds for one in beside) / sum(one.spare_core_seconds for one in beside)
    yield (
        f"[bold]Probes[/] beside real pods took {share:.1%} of what those left, wanted at most "
        f"{SPARE_MOST:.0%}. Of real pods for which there was room, from being sent to running:"
    )
    yield _starts({"met a probe": [one.met for one in beside], "met none": [one.unmet for one in beside]})


def _starts(kinds: Mapping[str, Sequence[Starts]]) -> Table:
    table = Table("", box=SIMPLE)
    for name in ("pods", "mean", "at most"):
        table.add_column(name, justify="right")
    for name, streams in kinds.items():
        some = [one for one in streams if one.pods]
        count = sum(one.pods for one in some)
        if count:
            mean = sum(one.mean_seconds * one.pods for one in some) / count
            table.add_row(name, str(count), f"{mean:.2f} s", f"{max(one.most_seconds for one in some):.2f} s")
        else:
            table.add_row(name, "0", "-", "-")
    return table


def _times(half: Half) -> Table:
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
