"""A cluster whose API server takes a time to answer each bind, and an engine that schedules on it."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

from msgspec.structs import replace

from builders import make_engine
from eclectus.model.commands import Bind, Report
from eclectus.model.events import BindConfirmed, Event, NodeSeen, Resumed, TaskSeen
from eclectus.model.objects import Node, Task
from eclectus.policies.place.allocation import LeastAllocated

BUSY_SECONDS = 0.02  # between two steps, at most


class SlowServer:
    """Binds are answered after `answer` seconds; then a pod runs for a time, and its end is seen at once."""

    def __init__(self, answer: float, *nodes: Node) -> None:
        self.answer, self.run_seconds, self.now = answer, 1.0, 0.0
        self.engine = make_engine(LeastAllocated())
        self.reports: list[tuple[float, Report]] = []
        self.binds: list[tuple[float, Bind]] = []
        self._tasks: dict[str, Task] = {}
        self._due: list[tuple[float, int, Event]] = []
        self._serial = 0
        self._step([*map(NodeSeen, nodes), Resumed()])

    def add(self, *tasks: Task) -> None:
        """Create pods now."""
        self._tasks |= {task.uid: task for task in tasks}
        self._step([TaskSeen(task) for task in tasks])

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while (at := self._next()) <= end:
            self.now = max(self.now, at)
            events = list[Event]()
            while self._due and self._due[0][0] <= self.now:
                events.append(heappop(self._due)[2])
            self._step(events)
        self.now = end

    def reported(self, since: float = -inf) -> list[str]:
        """The names of the pods that were reported at that time or later, in order."""
        return [report.name for at, report in self.reports if at >= since]

    def _next(self) -> float:
        """The engine steps all the time: on a real cluster there is always some event."""
        wake = self.engine.next_step_at()
        due = self._due[0][0] if self._due else inf
        return min(due, self.now + BUSY_SECONDS, inf if wake is None else wake)

    def _step(self, events: list[Event]) -> None:
        for command in self.engine.step(events, self.now):
            if isinstance(command, Report):
                self.reports.append((self.now, command))
            elif isinstance(command, Bind):
                self.binds.append((self.now, command))
                started, task = self.now + self.answer, replace(self._tasks[command.uid], node=command.node)
                self._later(started, BindConfirmed(command.uid, command.node))
                finished = started + self.run_seconds
                self._later(
                    finished, TaskSeen(replace(task, phase="Succeeded", started=started, finished=finished))
                )

    def _later(self, at: float, event: Event) -> None:
        self._serial += 1
        heappush(self._due, (at, self._serial, event))
