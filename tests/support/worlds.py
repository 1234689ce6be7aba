"""A world in memory that plays the API server to one engine: it stores pods and nodes and answers binds.

Its clock moves only when told. Binds are answered at the next step: confirmed, unless `refuse` says
why not. It checks what every world would: no pod is bound twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from builders import make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Command, Fault, Report
from eclectus.model.events import (
    BindConfirmed,
    BindRefused,
    Event,
    NodeGone,
    NodeSeen,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import Node, Task


class World:
    """Pods and nodes by name, and everything the engine has ever asked for."""

    def __init__(self, engine: Engine, *nodes: Node) -> None:
        self.engine, self.now = engine, 0.0
        self.tasks: dict[str, Task] = {}  # by name
        self.refuse: Callable[[Bind], str] = lambda bind: ""
        self.answers_binds = True  # False: binds stay in flight
        self.in_flight: list[Bind] = []
        self.binds: list[Bind] = []
        self.reports: list[Report] = []
        self.faults: list[Fault] = []
        self.step(Resumed(), *(NodeSeen(node) for node in nodes))

    # -- what the test does ----------------------------------------------------------------------

    def step(self, *events: Event, after: float = 0.0) -> list[Command]:
        """One step, `after` seconds later; returns its commands."""
        self.now += after
        commands = self.engine.step([*self._answers(), *events], self.now)
        for command in commands:
            self._take(command)
        return commands

    def settle(self) -> None:
        """Step until nothing is in flight."""
        while self.in_flight and self.answers_binds:
            self.step()

    def add(self, *tasks: Task) -> None:
        """Pods are created, all in one step, and their binds answered."""
        self.tasks |= {task.name: task for task in tasks}
        self.step(*(TaskSeen(task) for task in tasks))
        self.settle()

    def put(self, task: Task) -> None:
        """A pod has changed."""
        self.add(task)

    def end(self, name: str, seconds: float = 10.0) -> None:
        """A pod runs to its end, having run for so long."""
        task = self.tasks.pop(name)
        self.step(TaskSeen(replace(task, phase="Succeeded", started=self.now - seconds, finished=self.now)))
        self.settle()

    def delete(self, name: str) -> None:
        """A pod is removed."""
        self.step(TaskGone(self.tasks.pop(name).uid))
        self.settle()

    def put_node(self, node: Node) -> None:
        """A node comes or changes."""
        self.step(NodeSeen(node))
        self.settle()

    def drop_node(self, name: str) -> None:
        """A node goes."""
        self.step(NodeGone(name))
        self.settle()

    def advance_to_next_step(self) -> float:
        """Let time pass to the engine's own next wake; returns how long that was."""
        at = self.engine.next_step_at()
        assert at is not None, "the engine wants to sleep for ever"
        passed = max(0.0, at - self.now)
        self.step(after=passed)
        self.settle()
        return passed

    def sleep(self, seconds: float) -> None:
        """Let time pass, waking the engine as often as it asks."""
        self.settle()
        end = self.now + seconds
        while (at := self.engine.next_step_at()) is not None and at <= end:
            self.advance_to_next_step()
        self.now = end

    # -- what the test asks ----------------------------------------------------------------------

    def node_of(self, name: str) -> str:
        """Where a pod is bound; empty if it is not."""
        return self.tasks[name].node

    def placed(self) -> dict[str, str]:
        """Pod -> node of all bound pods."""
        return {name: task.node for name, task in self.tasks.items() if task.node}

    def messages(self, name: str) -> list[tuple[str, str]]:
        """Reason and message of everything said on a pod."""
        return [(report.reason, report.message) for report in self.reports if report.name == name]

    # -- within ----------------------------------------------------------------------------------

    def _take(self, command: Command) -> None:
        if isinstance(command, Bind):
            standing = self.tasks.get(command.name)
            assert standing is None or not standing.node, f"{command.name} is bound twice"
            assert command.uid not in {bind.uid for bind in self.in_flight}, f"{command.name} is in flight"
            self.binds.append(command)
            self.in_flight.append(command)
        elif isinstance(command, Report):
            self.reports.append(command)
            if command.name in self.tasks:
                self.tasks[command.name] = replace(self.tasks[command.name], reported=command.message)
        else:
            self.faults.append(command)

    def _answers(self) -> list[Event]:
        if not self.answers_binds:
            return []
        asked, self.in_flight = self.in_flight, []
        return [event for bind in asked for event in self._answer(bind)]

    def _answer(self, bind: Bind) -> Sequence[Event]:
        reason = self.refuse(bind) if bind.name in self.tasks else "pod not found"
        if reason:
            return (BindRefused(bind.uid, bind.node, reason),)
        bound = self.tasks[bind.name] = replace(self.tasks[bind.name], node=bind.node)
        return BindConfirmed(bind.uid, bind.node), TaskSeen(bound)


def small_world(engine: Engine, nodes: int = 1, cpu: float = 4) -> World:
    """A world of nodes n0, n1, … of so many cores."""
    return World(engine, *(make_node(f"n{at}", cpu=cpu) for at in range(nodes)))


def numbered(count: int, prefix: str = "t", **fields: object) -> list[Task]:
    """Tasks t0, t1, … created one second after the other."""
    return [make_task(f"{prefix}{at}", created=float(at), **fields) for at in range(count)]  # type: ignore[arg-type]
