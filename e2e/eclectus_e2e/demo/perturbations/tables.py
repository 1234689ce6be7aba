"""What the second act shows at its end, on a terminal."""

from collections.abc import Iterator

from rich.box import SIMPLE
from rich.table import Table

from eclectus_e2e.demo.perturbations.report import PerturbationReport


def tables(report: PerturbationReport) -> Iterator[Table | str]:
    """Headings and a table: what was wanted, and what came of it."""
    yield (
        f"\n[bold]Act two[/]: {report.pods} pods on {report.nodes} nodes at load {report.load:g}; "
        "speeds swapped, a node frozen and thawed, one only probed"
    )
    table = Table("", "found", "wanted", "", box=SIMPLE)
    for one in report.wanted:
        table.add_row(one.what, one.found, one.wanted, "[green]met[/]" if one.met else "[yellow]missed[/]")
    yield table
    counts = (
        f"{report.lost} lost, {report.doubled} ran twice, {report.overcommitted} over-committed, "
        f"{report.violations} violations; {report.sent_again} stood still and were sent again"
    )
    yield f"What must not happen: {counts if report.sound else f'[red]{counts}[/]'}"
