"""An in-memory API server for one engine: it stores pods and nodes, and answers binds.

Only the test moves its clock. Binds are answered at the next step: confirmed, unless `refuse` returns a
reason. Evicted pods are gone at the next step, or terminate until the test deletes them. It asserts that no
pod is bound or evicted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from builders import make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.model.commands import Bind, Command, Evict, Fault, Nominate, Report, Solve
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
from flow_answers import answer


class World:
    """Pods by name, and every command that the engine has issued."""

    def __init__(self, engine: Engine, *nodes: Node) -> None:
        self.engine, self.now = engine, 0.0
        self.tasks: dict[str, Task] = {}  # by name
        self.refuse: Callable[[Bind], str] = lambda bind: ""
        self.answers_binds = True  # False: binds stay in flight
        self.in_flight: list[Bind] = []
        self.binds: list[Bind] = []
        self.reports: list[Report] = []
        self.faults: list[Fault] = []
        self.nominations: list[Nominate] = []
        self.evictions: list[Evict] = []
        self.solves: list[Solve] = []
        self.answers_solves = True  # at the next step; False: the test answers
        self.terminates_at_once = True  # False: evicted pods terminate until the test deletes them
        self._seen: list[Event] = []  # changes of pods, for the next step
        self.step(Resumed(), *(NodeSeen(node) for node in nodes))

    # -- actions of the test ---------------------------------------------------------------------

    def step(self, *events: Event, after: float = 0.0) -> list[Command]:
        """One step, `after` seconds later; returns its commands."""
        self.now += after
        seen, self._seen = self._seen, []
        commands = self.engine.step([*self._answers(), *seen, *events], self.now)
        for command in commands:
            self._take(command)
        return commands

    def settle(self) -> None:
        """Step until no bind is in flight."""
        while (self.in_flight and self.answers_binds) or self._seen:
            self.step()

    def add(self, *tasks: Task) -> None:
        """Create pods, all in one step, and answer their binds."""
        self.tasks |= {task.name: task for task in tasks}
        self.step(*(TaskSeen(task) for task in tasks))
        self.settle()

    def put(self, task: Task) -> None:
        """Change a pod."""
        self.add(task)

    def end(self, name: str, seconds: float = 10.0) -> None:
        """A pod succeeds after it has run for this many seconds."""
        task = self.tasks.pop(name)
        self.step(TaskSeen(replace(task, phase="Succeeded", started=self.now - seconds, finished=self.now)))
        self.settle()

    def delete(self, name: str) -> None:
        """Delete a pod."""
        self.step(TaskGone(self.tasks.pop(name).uid))
        self.settle()

    def put_node(self, node: Node) -> None:
        """Create or change a node."""
        self.step(NodeSeen(node))
        self.settle()

    def drop_node(self, name: str) -> None:
        """Delete a node."""
        self.step(NodeGone(name))
        self.settle()

    def advance_to_next_step(self) -> float:
        """Let time pass until `next_step_at` and step; returns how many seconds passed."""
        at = self.engine.next_step_at()
        assert at is not None, "the engine has no next step without an event"
        passed = max(0.0, at - self.now)
        self.step(after=passed)
        self.settle()
        return passed

    def sleep(self, seconds: float) -> None:
        """Let time pass, with every step that the engine asks for by `next_step_at`."""
        self.settle()
        end = self.now + seconds
        while (at := self.engine.next_step_at()) is not None and at <= end:
            self.advance_to_next_step()
        self.now = end

    def victims(self) -> list[str]:
        """The names of all pods that were evicted, in order."""
        return [each.name for each in self.evictions]

    # -- results ---------------------------------------------------------------------------------

    def node_of(self, name: str) -> str:
        """The node a pod is bound to; empty if it is not bound."""
        return self.tasks[name].node

    def placed(self) -> dict[str, str]:
        """Pod -> node of all bound pods."""
        return {name: task.node for name, task in self.tasks.items() if task.node}

    def messages(self, name: str) -> list[tuple[str, str]]:
        """Reason and message of every report on a pod."""
        return [(report.reason, report.message) for report in self.reports if report.name == name]

    # -- commands and their answers --------------------------------------------------------------

    def _take(self, command: Command) -> None:
        if isinstance(command, Bind):
            stored = self.tasks.get(command.name)
            assert stored is None or not stored.node, f"{command.name} is bound twice"
            assert command.uid not in {bind.uid for bind in self.in_flight}, f"{command.name} is in flight"
            self.binds.append(command)
            self.in_flight.append(command)
        elif isinstance(command, Report):
            self.reports.append(command)
            if command.name in self.tasks:
                self.tasks[command.name] = replace(self.tasks[command.name], reported=command.message)
        elif isinstance(command, Nominate):
            self.nominations.append(command)
            self.tasks[command.name] = replace(self.tasks[command.name], nominated=command.node)
        elif isinstance(command, Evict):
            self._evict(command)
        elif isinstance(command, Solve):
            self.solves.append(command)
            if self.answers_solves and (solved := answer(self.engine, command)) is not None:
                self._seen.append(solved)
        else:
            self.faults.append(command)

    def _evict(self, evict: Evict) -> None:
        assert evict.uid not in {each.uid for each in self.evictions}, f"{evict.name} is evicted twice"
        self.evictions.append(evict)
        task = self.tasks[evict.name]
        assert task.node == evict.node, f"{evict.name} is not on {evict.node}"
        if not self.terminates_at_once:
            self.tasks[evict.name] = replace(task, deleting=True)
            self._seen.append(TaskSeen(self.tasks[evict.name]))
        else:
            self._seen.append(TaskGone(self.tasks.pop(evict.name).uid))

    def _answers(self) -> list[Event]:
        if not self.answers_binds:
            return []
        binds, self.in_flight = self.in_flight, []
        return [event for bind in binds for event in self._answer(bind)]

    def _answer(self, bind: Bind) -> Sequence[Event]:
        reason = self.refuse(bind) if bind.name in self.tasks else "pod not found"
        if reason:
            return (BindRefused(bind.uid, bind.node, reason),)
        bound = self.tasks[bind.name] = replace(self.tasks[bind.name], node=bind.node)
        return BindConfirmed(bind.uid, bind.node), TaskSeen(bound)


def small_world(engine: Engine, nodes: int = 1, cpu: float = 4) -> World:
    """A world of nodes n0, n1, … with this many cores each."""
    return World(engine, *(make_node(f"n{at}", cpu=cpu) for at in range(nodes)))


def numbered(count: int, prefix: str = "t", **fields: object) -> list[Task]:
    """Tasks t0, t1, … created one second after the other."""
    return [make_task(f"{prefix}{at}", created=float(at), **fields) for at in range(count)]  # type: ignore[arg-type]
