"""Progress of an experiment: the state of a run at a moment, as bars and a table of nodes, or as lines."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import mean
from typing import Protocol

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from eclectus_e2e.demo.environment import Environment
from eclectus_e2e.demo.speeds import LearnedRate, NodeSpeed, compare_speeds, without_class_factors
from eclectus_e2e.demo.workload.load import SentPods


@dataclass(frozen=True)
class RunId:
    """One scheduler at one load."""

    scheduler: str
    load: float
    pair: str = ""  # which one, where there are several

    def __str__(self) -> str:
        return ", ".join(filter(None, [f"{self.scheduler} at load {self.load:g}", self.pair]))


@dataclass(frozen=True)
class Snapshot:
    """`pods` is the number of pods on each node, in the order of `speeds`."""

    run: RunId
    seconds: float  # since the stream's begin
    planned: int
    created: int
    ended: int
    speeds: Sequence[NodeSpeed]
    pods: Sequence[int]

    @property
    def running(self) -> int:
        """Pods on nodes."""
        return sum(self.pods)

    @property
    def waiting(self) -> int:
        """Pods that are created and neither on a node nor ended; a refused pod has ended."""
        return max(0, self.created - self.ended - self.running)

    @property
    def is_over(self) -> bool:
        """Whether every pod has ended, successfully or not."""
        return self.ended >= self.planned


def take_snapshot(
    environment: Environment, run: RunId, sent: SentPods, rates: Sequence[LearnedRate]
) -> Snapshot:
    """Ask the fake kubelet for its pods, and compare the learned rates with its speeds. Blocks for 5 ms."""
    state = environment.kubelet.state()
    counters = state["counters"]
    ends = ("finished", "killed", "vanished", "overcommitted", "violations")
    nodes = sorted(state["nodes"].items(), key=lambda each: (each[1]["speed"], each[0]))
    true = {name: node["speed"] for name, node in nodes}
    factors = {name: node["class_factors"] for name, node in nodes}
    speeds = compare_speeds(without_class_factors(rates, factors), true)
    return Snapshot(
        run=run,
        seconds=time.time() - sent.began,
        planned=sent.planned,
        created=len(sent.at),
        ended=sum(counters[name] for name in ends),
        speeds=speeds,
        pods=[state["nodes"][node.node]["running"] for node in speeds],
    )


LINE_EVERY_SECONDS = 5.0
_BARS = 6  # of the last runs, so that the nodes stay on the terminal
_TABLES = 2  # side by side, so that thirty nodes fit a terminal
_FULL = 8  # pods that a node of the demo holds at most, each with half a core
_PODS_PER_BLOCK, _LONGEST_QUEUE = 2, 30  # of the bar of waiting pods
_LEGEND = (
    "[dim]true: speed that no scheduler is given; learned: green within a third of it, - if nothing is "
    "learned; bars: pods[/]"
)


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
    """A line every few seconds with the numbers of the live screen: for pipes, files and CI."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._next = 0.0

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, highlight=False)
        self._next = 0.0

    def show(self, snapshot: Snapshot) -> None:
        """Print a line when LINE_EVERY_SECONDS have passed, and when the run is over."""
        if time.monotonic() < self._next and not snapshot.is_over:
            return
        self._next = time.monotonic() + LINE_EVERY_SECONDS
        text = (
            f"{snapshot.run}: {max(0.0, snapshot.seconds):.0f} s, {snapshot.ended} of {snapshot.planned} "
            f"ended, {snapshot.running} running, {snapshot.waiting} waiting"
        )
        line = f"{text}{_learned_text(snapshot)}; {_groups_text(snapshot)}"
        self._console.print(line, highlight=False, soft_wrap=True)


class LiveScreen:
    """A bar for each of the last runs, above a table of the nodes."""

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
        if len(self._tasks) > _BARS:
            self._bars.remove_task(self._tasks.pop(next(iter(self._tasks))))
        self._bars.update(self._tasks[snapshot.run], completed=snapshot.ended)
        self._live.update(Group(self._bars, _summary(snapshot), _nodes(snapshot), _LEGEND), refresh=True)


def _summary(snapshot: Snapshot) -> str:
    counts = f"{snapshot.running} pods running, {snapshot.waiting} waiting "
    queue = "█" * min(_LONGEST_QUEUE, -(-snapshot.waiting // _PODS_PER_BLOCK))
    return f"[bold]{snapshot.run}[/]: {counts}[magenta]{queue}[/]{_learned_text(snapshot)}"


def _learned_text(snapshot: Snapshot) -> str:
    if not _learns(snapshot):
        return ""
    learned = sum(node.within_third for node in snapshot.speeds)
    return f"; speed learned of {learned} of {len(snapshot.speeds)} nodes"


def _groups_text(snapshot: Snapshot) -> str:
    """For the nodes of each true speed: the mean learned speed, if the scheduler learns, and the pods."""
    learned, pods = defaultdict[float, list[float]](list), Counter[float]()
    for node, running in zip(snapshot.speeds, snapshot.pods, strict=True):
        learned[node.true] += [] if node.learned is None else [node.learned]
        pods[node.true] += running
    parts = []
    for speed in sorted(pods):
        found = f" learned as {mean(learned[speed]):.1f}" if learned[speed] else " not learned"
        parts.append(f"speed {speed:g}{found if _learns(snapshot) else ''}: {pods[speed]} pods")
    return ", ".join(parts)


def _learns(snapshot: Snapshot) -> bool:
    return any(node.learned is not None for node in snapshot.speeds)


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
