"""Progress of an experiment: bars and a table of the nodes on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from eclectus_e2e.demo.snapshot import RunId, Snapshot

LINE_EVERY_SECONDS = 10.0
_TABLES = 2  # side by side, so that thirty nodes fit a terminal
_FULL = 8  # pods that a node of the demo holds at most, each with half a core


class Screen(Protocol):
    """Shows messages and snapshots."""

    def say(self, text: str) -> None:
        """Print a line that stays."""

    def show(self, snapshot: Snapshot) -> None:
        """Show the present state of a run."""


@contextmanager
def opened(console: Console) -> Iterator[Screen]:
    """The screen that suits this console."""
    if not console.is_terminal:
        yield PlainScreen(console)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="ellipsis") as live:
        yield LiveScreen(live)


class PlainScreen:
    """A line every ten seconds: for pipes, files and CI."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = 0.0

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, highlight=False)
        self._next = 0.0

    def show(self, snapshot: Snapshot) -> None:
        """Print a line when ten seconds have passed, and when the run is over."""
        if time.monotonic() < self._next and not snapshot.is_over:
            return
        self._next = time.monotonic() + LINE_EVERY_SECONDS
        text = (
            f"{snapshot.run}: {max(0.0, snapshot.seconds):.0f} s, {snapshot.ended} of {snapshot.planned} "
            f"pods ended, {snapshot.running} running, {snapshot.waiting} waiting"
        )
        self._console.print(text + _learned_text(snapshot), highlight=False, soft_wrap=True)


class LiveScreen:
    """A bar for each run, above a table of the nodes."""

    def __init__(self, live: Live) -> None:
        self._live = live
        bar, count = BarColumn(bar_width=None), MofNCompleteColumn()
        self._bars = Progress(TextColumn("{task.description}"), bar, count, TimeElapsedColumn(), expand=True)
        self._tasks: dict[RunId, TaskID] = {}

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self._live.console.print(text, highlight=False)

    def show(self, snapshot: Snapshot) -> None:
        """Redraw bars and table."""
        if snapshot.run not in self._tasks:
            self._tasks[snapshot.run] = self._bars.add_task(str(snapshot.run), total=snapshot.planned)
        self._bars.update(self._tasks[snapshot.run], completed=snapshot.ended)
        self._live.update(Group(self._bars, _summary(snapshot), _nodes(snapshot)), refresh=True)


def _summary(snapshot: Snapshot) -> str:
    counts = f"{snapshot.running} running, {snapshot.waiting} waiting"
    return f"[bold]{snapshot.run}[/]: {counts}{_learned_text(snapshot)}"


def _learned_text(snapshot: Snapshot) -> str:
    if all(node.learned is None for node in snapshot.speeds):
        return ""
    learned = sum(node.within_third for node in snapshot.speeds)
    return f"; speed learned of {learned} of {len(snapshot.speeds)} nodes"


def _nodes(snapshot: Snapshot) -> Columns:
    rows = list(zip(snapshot.speeds, snapshot.pods, strict=True))
    each = -(-len(rows) // _TABLES)
    tables = []
    for begin in range(0, len(rows), each):
        table = Table("node", "true", "learned", "pods", "", box=None, padding=(0, 1))
        for node, pods in rows[begin : begin + each]:
            learned = "-" if node.learned is None else f"{node.learned:.2f}"
            style = "green" if node.within_third else "yellow"
            bar = "█" * pods + "·" * max(0, _FULL - pods)
            table.add_row(node.node, f"{node.true:g}", f"[{style}]{learned}[/]", str(pods), f"[cyan]{bar}[/]")
        tables.append(table)
    return Columns(tables, padding=(0, 3))
