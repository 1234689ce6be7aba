"""An engine whose steps are timed, and the nodes and pods of the cases in engine.py."""

import time
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from eclectus.engine.engine import Engine
from eclectus.framework import Learn, Order, Place, Profile, Relieve
from eclectus.model.commands import Bind, Fault
from eclectus.model.events import BindConfirmed, Event, NodeRecalled, NodeSeen, Resumed, TaskSeen
from eclectus.model.learned import LearnedNode, LearnedWork
from eclectus.model.objects import Node, Spec, Task
from eclectus.policies.hold.none import NoHold
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.relieve.none import NoRelief
from eclectus.policies.rosella import Rosella, RosellaLearn
from eclectus.policies.speculate.none import NoCopies

STEP_SECONDS = 1e-4  # of the engine's time, between two steps: no report, recheck or fit becomes due
GIB = 2**30
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
WORKLOAD = "work"


class Driver:
    """An engine with the default policies but for those given. It leads; its nodes are empty."""

    def __init__(
        self,
        order: Order,
        nodes: Sequence[Node],
        relieve: Relieve | None = None,
        *,
        place: Place | None = None,
        learn: Learn | None = None,
    ) -> None:
        profile = Profile(
            "eclectus", order, place or Rosella(), FifoLine(), relieve or NoRelief(), NoCopies(), NoHold()
        )
        self.engine = Engine([profile], learn or RosellaLearn())
        self.now, self.milliseconds = 0.0, 0.0  # `milliseconds`: CPU time since it was last set to 0
        self.step(*map(NodeSeen, nodes), Resumed())

    def step(self, *events: Event) -> list[Bind]:
        """One step; its binds. Raises RuntimeError for a Fault: a defect of the engine or of the case."""
        return self.step_at(self.now + STEP_SECONDS, *events)

    def step_at(self, now: float, *events: Event) -> list[Bind]:
        """The same at a time of the engine."""
        self.now = now
        began = time.process_time()
        commands = self.engine.step(events, self.now)
        self.milliseconds += (time.process_time() - began) * 1e3
        if faults := [command for command in commands if isinstance(command, Fault)]:
            raise RuntimeError(f"the engine reports {faults[0]}")
        return [command for command in commands if isinstance(command, Bind)]

    def wait(self, *tasks: Task) -> None:
        """Add pods of which none may be placed now. Raises RuntimeError otherwise."""
        binds = self.step(*map(TaskSeen, tasks))
        while (due := self.engine.next_step_at()) is not None and due <= self.now:
            binds += self.step()  # a cycle over many classes takes several steps
        if binds:
            raise RuntimeError(f"{binds[0]} was placed and should wait")

    def bind_one(self, event: Event) -> None:
        """An event by which just one pod is bound, and the answer to that bind."""
        (bind,) = self.step(event)
        self.step(BindConfirmed(bind.uid, bind.node))


def node_name(number: int) -> str:
    """The name of a node."""
    return f"node-{number:05}"


def make_node(number: int, cpu: int = 32_000) -> Node:
    """A node in one of three zones; `cpu` in thousandths of a core."""
    name, zone = node_name(number), f"zone-{number % 3}"
    amounts = (("cpu", cpu), ("ephemeral-storage", 100 * GIB), ("memory", 128 * GIB), ("pods", 110))
    return Node(name, amounts, ((HOSTNAME, name), (ZONE, zone)))


def make_spec(cpu: int = 1_000, **fields: Any) -> Spec:
    """A spec that requests so many thousandths of a core, and some memory."""
    memory = 200 * 2**20
    return Spec((("cpu", cpu), ("memory", memory)), (cpu, memory), **fields)


def make_task(name: str, spec: Spec | None = None, **fields: Any) -> Task:
    """A pending pod of one workload."""
    return Task(f"uid-{name}", "bench", name, spec=spec or make_spec(), workload=WORKLOAD, **fields)


def running(name: str, node: Node, **fields: Any) -> Task:
    """A pod that runs on the node."""
    return make_task(name, node=node.name, phase="Running", started=0.0, **fields)


def ended(task: Task, now: float) -> Task:
    """The same pod after it has succeeded."""
    return replace(task, phase="Succeeded", started=now - 1.0, finished=now)


def recalled(node: Node, rate: float) -> NodeRecalled:
    """The node is known to do so many tasks a second in a slot."""
    work = LearnedWork(WORKLOAD, rate, samples=100, confidence=1.0)
    return NodeRecalled(LearnedNode(node.name, 1, 0.0, "live", rate, 1.0, (work,)))
