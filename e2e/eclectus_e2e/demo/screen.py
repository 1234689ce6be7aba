"""Showing a contest while it runs: bars and a table of the nodes on a terminal, plain lines elsewhere."""

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
    """Shows scenes."""

    def say(self, text: str) -> None:
        """A line that stays."""

    def show(self, scene: Snapshot) -> None:
        """The contest as it is now."""


@contextmanager
def opened(console: Console) -> Iterator[Screen]:
    """A screen for this console."""
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
        """A line."""
        self._console.print(text, highlight=False)
        self._next = 0.0

    def show(self, scene: Snapshot) -> None:
        """A line, when it is time for one or all is over."""
        if time.monotonic() < self._next and not scene.is_over:
            return
        self._next = time.monotonic() + LINE_EVERY_SECONDS
        text = (
            f"{scene.run}: {max(0.0, scene.seconds):.0f} s, {scene.ended} of {scene.planned} pods ended, "
            f"{scene.running} running, {scene.waiting} waiting"
        )
        self._console.print(text + _learned_text(scene), highlight=False, soft_wrap=True)


class LiveScreen:
    """Bars, one a contest, above a table of the nodes."""

    def __init__(self, live: Live) -> None:
        self._live = live
        bar, count = BarColumn(bar_width=None), MofNCompleteColumn()
        self._bars = Progress(TextColumn("{task.description}"), bar, count, TimeElapsedColumn(), expand=True)
        self._tasks: dict[RunId, TaskID] = {}

    def say(self, text: str) -> None:
        """A line above everything that moves."""
        self._live.console.print(text, highlight=False)

    def show(self, scene: Snapshot) -> None:
        """Draw anew."""
        if scene.run not in self._tasks:
            self._tasks[scene.run] = self._bars.add_task(str(scene.run), total=scene.planned)
        self._bars.update(self._tasks[scene.run], completed=scene.ended)
        self._live.update(Group(self._bars, _summary(scene), _nodes(scene)), refresh=True)


def _summary(scene: Snapshot) -> str:
    return f"[bold]{scene.run}[/]: {scene.running} running, {scene.waiting} waiting{_learned_text(scene)}"


def _learned_text(scene: Snapshot) -> str:
    known = sum(node.within_third for node in scene.speeds)
    some = any(node.learned is not None for node in scene.speeds)
    return f"; speed learned of {known} of {len(scene.speeds)} nodes" if some else ""


def _nodes(scene: Snapshot) -> Columns:
    rows = list(zip(scene.speeds, scene.pods, strict=True))
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
