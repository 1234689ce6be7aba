"""What the tables of all experiments share."""

from collections.abc import Iterable, Iterator

from rich.box import SIMPLE
from rich.table import Table

BUSY_SECONDS = 0.1  # lateness of the load generator; on idle cores it is some milliseconds


def table_of(texts: Iterable[str], numbers: Iterable[str]) -> Table:
    """An empty table: columns of texts, then columns of numbers, which are aligned to the right."""
    table = Table(*texts, box=SIMPLE)
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def judged(met: bool) -> str:
    """Whether a target was met, in its colour."""
    return "[green]met[/]" if met else "[yellow]missed[/]"


def faults_heading(sound: bool) -> str:
    """What stands above the counts of lost pods and the like."""
    return "\n[bold]What must not happen[/]" + ("" if sound else "[red], and did happen[/]")


def lateness_warning(seconds: float, what: str) -> Iterator[str]:
    """That the figures mean little, where the load generator could not keep its schedule."""
    if seconds > BUSY_SECONDS:
        problem = f"The machine was busy, {what} {seconds:.1f} s late"
        yield f"[yellow]These figures mean little. {problem}; run it again with nothing else running.[/]"
