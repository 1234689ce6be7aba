"""The steps of a minute in a busy cluster: whatever happens while pods are placed, to find the longest step.

Nodes and pods are listed, and what another process has learned is recalled. Then pods of many workloads
arrive, are bound, run and end, so that the learner learns; nodes report, join, leave, are labelled and
cordoned; probes run, and the load of all nodes is measured. All of it depends on a seed and on the engine's
binds alone, so every run has the same steps.
"""

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import islice

from msgspec.structs import replace

from eclectus.cli.scheduler import GC_THRESHOLD
from eclectus.live.inbox import MAX_BATCH
from eclectus.live.learned_objects import PAGE_PROFILES
from eclectus.model.events import (
    BindConfirmed,
    Event,
    LoadSeen,
    NodeGone,
    NodeRecalled,
    NodeSeen,
    TaskGone,
    TaskSeen,
)
from eclectus.model.learned import LearnedNode, LearnedWork
from eclectus.model.objects import Spec, Task
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.relieve.preemption import Preemption
from eclectus_bench.steps.driver import Driver, make_node, make_spec, make_task, node_name

BEGAN = 1_000.0  # of the engine's time, seconds
STEP_SECONDS = 0.01  # the events of so long are one step
BIND_SECONDS, WATCH_SECONDS, START_SECONDS = 0.005, 0.015, 0.2  # from the decision to the answer, and so on
TASK_SECONDS = 20.0  # mean duration on a node of speed 1
SPEEDS = (0.5, 1.0, 2.0)
LISTED_ON_A_NODE = 6  # pods; a third of them are services
PROBES_PER_SECOND = 5
RUNS = 2  # of which each step's lesser time counts: what other processes disturb is not in both


@dataclass(frozen=True)
class Size:
    """How much happens."""

    nodes: int
    workloads: int
    pods_per_second: float
    seconds: int


def step_milliseconds(size: Size) -> list[float]:
    """CPU time of each step."""
    runs = [_run(size) for _ in range(RUNS)]
    if len({len(run) for run in runs}) > 1:
        raise RuntimeError("equal events should lead to equal steps")
    return [min(step) for step in zip(*runs, strict=True)]


def _run(size: Size) -> list[float]:
    gc.set_threshold(*GC_THRESHOLD)  # as in the scheduler
    minute, driver = BusyMinute(size), Driver(FifoOrder(), [], Preemption())
    found, is_listed = list[float](), False
    for now, events in minute.steps():
        if now > BEGAN and not is_listed:
            gc.collect()
            gc.freeze()
            is_listed = True
        driver.milliseconds = 0.0
        binds = driver.step_at(now, *events)
        found.append(driver.milliseconds)
        for bind in binds:
            minute.bound(bind.uid, bind.node, now)
    return found


class BusyMinute:
    """What happens. `bound` is to be called for each bind of a step before the next step is asked for."""

    def __init__(self, size: Size) -> None:
        self._size, self._random = size, random.Random(1)
        self._specs = [make_spec(500 + 250 * (at % 8)) for at in range(size.workloads)]
        self._nodes = [make_node(at) for at in range(size.nodes)]
        self._speeds = {node.name: self._random.choice(SPEEDS) for node in self._nodes}
        self._due: list[tuple[float, int, Callable[[float], Event]]] = []
        self._pending: dict[str, Task] = {}
        self._serial = 0

    def steps(self) -> Iterator[tuple[float, Sequence[Event]]]:
        """(now, events) of each step, as many events at most as the scheduler passes to one."""
        nodes = map(NodeSeen, self._nodes)
        for listed, most in (
            (nodes, MAX_BATCH),
            (self._listed_pods(), MAX_BATCH),
            (self._recalled(), PAGE_PROFILES),
        ):
            while batch := list(islice(listed, int(most))):
                yield BEGAN, batch
        self._plan()
        for number in range(1, round(self._size.seconds / STEP_SECONDS) + 1):
            now, events = BEGAN + number * STEP_SECONDS, list[Event]()
            while self._due and self._due[0][0] <= now:
                at, _, happens = heappop(self._due)
                events.append(happens(at))
            yield now, events

    def bound(self, uid: str, node: str, now: float) -> None:
        """The engine has bound a pod."""
        task = replace(self._pending.pop(uid), node=node)
        self._at(now + BIND_SECONDS, lambda _: BindConfirmed(uid, node))
        self._at(now + WATCH_SECONDS, lambda _: TaskSeen(task))
        self._at(now + START_SECONDS, partial(self._starts, task))

    # -- what exists before --------------------------------------------------------------------

    def _listed_pods(self) -> Iterator[Event]:
        for node in self._nodes:
            for at in range(LISTED_ON_A_NODE):
                task = replace(self._task(is_service=at % 3 == 0), node=node.name)
                yield self._starts(task, BEGAN)

    def _recalled(self) -> Iterator[Event]:
        for name, speed in self._speeds.items():
            work = [
                LearnedWork(f"work-{at}", speed / TASK_SECONDS, samples=30, confidence=0.9)
                for at in range(self._size.workloads)
            ]
            yield NodeRecalled(LearnedNode(name, 1, BEGAN - 60.0, "live", speed, 0.9, tuple(work)))

    # -- what happens --------------------------------------------------------------------------

    def _plan(self) -> None:
        seconds, at = self._size.seconds, BEGAN
        while (at := at + self._random.expovariate(self._size.pods_per_second)) < BEGAN + seconds:
            self._at(at, self._arrives)
        for number in range(len(self._nodes)):
            self._at(BEGAN + self._random.random() * seconds, partial(self._reports, number))
        for second in range(seconds):
            begins = BEGAN + second
            self._at(begins + 0.3, self._is_labelled)
            for _ in range(PROBES_PER_SECOND):
                self._at(begins + self._random.random(), self._is_probed)
            if second % 5 == 0:
                self._at(begins + 0.4, self._joins)
                self._at(begins + 0.4, self._leaves)
                self._at(begins + 0.5, self._is_cordoned)
            if second % 30 == 5:
                self._at(begins + 0.6, self._is_measured)

    def _at(self, at: float, happens: Callable[[float], Event]) -> None:
        self._serial += 1
        heappush(self._due, (at, self._serial, happens))

    # pods

    def _task(self, *, is_service: bool = False, **fields: object) -> Task:
        self._serial += 1
        kind = self._random.randrange(self._size.workloads)
        spec = replace(self._specs[kind], long_running=True) if is_service else self._specs[kind]
        return replace(make_task(f"pod-{self._serial}", spec), workload=f"work-{kind}", **fields)

    def _arrives(self, at: float) -> Event:
        task = self._task(created=at)
        self._pending[task.uid] = task
        return TaskSeen(task)

    def _starts(self, task: Task, at: float) -> Event:
        task = replace(task, phase="Running", started=at)
        if not task.spec.long_running:
            seconds = self._random.expovariate(1.0) * TASK_SECONDS / self._speeds[task.node]
            self._at(at + seconds, partial(self._ends, task))
        return TaskSeen(task)

    def _ends(self, task: Task, at: float) -> Event:
        self._at(at + 1.0, lambda _: TaskGone(task.uid))
        return TaskSeen(replace(task, phase="Succeeded", finished=at))

    def _is_probed(self, at: float) -> Event:
        task, node = self._task(), self._random.choice(self._nodes)
        probe = replace(task, spec=Spec(), notional_requests=task.spec.requests, node=node.name)
        return self._starts(probe, at)

    # nodes

    def _reports(self, number: int, _: float) -> Event:
        return NodeSeen(replace(self._nodes[number]))  # an equal object, as decoded from the watch

    def _is_labelled(self, at: float) -> Event:
        number = self._random.randrange(len(self._nodes))
        node = self._nodes[number]
        self._nodes[number] = replace(node, labels=(*node.labels, (f"example.com/{at}", "")))
        return self._reports(number, at)

    def _is_cordoned(self, at: float) -> Event:
        number = self._random.randrange(len(self._nodes))
        self._nodes[number] = replace(self._nodes[number], unschedulable=True)
        return self._reports(number, at)

    def _joins(self, _: float) -> Event:
        node = make_node(len(self._speeds))
        self._speeds[node.name] = 1.0
        return NodeSeen(node)

    def _leaves(self, _: float) -> Event:
        return NodeGone(node_name(self._random.randrange(len(self._nodes))))

    def _is_measured(self, _: float) -> Event:
        return LoadSeen(tuple((node.name, self._random.random() * 0.3) for node in self._nodes))
