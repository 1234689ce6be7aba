"""What the act on real nodes shows at its end."""

from collections.abc import Iterator

from rich.box import SIMPLE
from rich.table import Table

from eclectus_e2e.demo.alarm import WANTED
from eclectus_e2e.demo.waits import SPARE_MOST

from .report import Half, RealReport


def tables(report: RealReport) -> Iterator[Table | str]:
    """Headings and tables: of the first quotas, then of the changed ones."""
    halves = (("from nothing", "probes", report.first), ("again, quotas changed", "samples", report.again))
    for words, counted, half in halves:
        yield f"\n[bold]Learned {words}[/]: {_after(half)}. No scheduler is told a quota"
        yield _nodes(half, counted)
        yield "[bold]Response time[/] of pods in real containers, and how many each node ran"
        yield _times(half)
        yield from _probes(half)
        yield f"Eclectus: {half.mean_ratio:.2f} of kube-scheduler's mean, {half.p99_ratio:.2f} of its p99"


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


def _probes(half: Half) -> Iterator[str]:
    """Beside the streams in which they took most."""
    beside = [one.probes for one in half.schedulers.values() if one.probes is not None]
    if not beside:
        return
    share, held = max(one.spare_share for one in beside), max(one.held_up_seconds for one in beside)
    yield (
        f"Probes took {share:.1%} of what real pods left (wanted: at most {SPARE_MOST:.0%}); the "
        f"longest that one kept a real pod waiting is {held:.1f} s"
    )


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
