"""What a decision of the engine costs, in a process of its own and without an API server.

Three workloads, each at several sizes of the cluster:

    burst    equal pods, 500 added in one step: a backlog
    single   equal pods, one a step, its bind confirmed in the next: an open stream
    mixed    as burst, with twelve classes in random order, so that each decision finds changed nodes

Handling the events of the pods and of their binds is included. The first pod of each class is not: a new
class is checked against every node once, which is measured separately. No pod ends: policies that wait for
the end of tasks must still use the nodes with room.
"""

import cProfile
import gc
import itertools
import multiprocessing
import pstats
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eclectus.engine.engine import Engine
from eclectus.framework import Profile
from eclectus.model.commands import Bind, Solve
from eclectus.model.events import BindConfirmed, Event, NodeSeen, Resumed, TaskSeen
from eclectus.model.objects import Node, Spec, Task
from eclectus.policies.hold.none import NoHold
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.relieve.none import NoRelief
from eclectus.policies.rosella import RosellaLearn
from eclectus.policies.speculate.none import NoCopies
from eclectus.policies.table import PLACE
from eclectus.sim.world.solving import solved
from eclectus_e2e.usage import peak_mebibytes

Workload = Literal["burst", "single", "mixed"]
WORKLOADS: tuple[Workload, ...] = ("burst", "single", "mixed")
BURST = 500  # pods a step: about what a watch of a busy API server delivers at once
CLASSES = 12
STEP_SECONDS = 0.001  # of the engine's time, between two steps
STEPS_MORE = 50  # after the last pods have come
GIB = 2**30


@dataclass(frozen=True)
class Course:
    """How much is measured for each policy and workload."""

    node_counts: tuple[int, ...]
    repeats: int
    pods: int


FULL = Course(node_counts=(500, 5_000, 15_000), repeats=5, pods=2_000)
# `single` lasts longer than the second that is expected of a task of unknown speed, so tasks become overdue.
QUICK = Course(node_counts=(100, 500), repeats=1, pods=500)


@dataclass(frozen=True)
class DecisionCost:
    """One policy, workload and size. CPU time: medians over repeats, each a mean over its pods."""

    policy: str
    workload: Workload
    nodes: int
    microseconds: float  # a decision
    new_class_ms: float  # the first pod of a class
    peak_mib: float  # of the whole process, Python and numpy included


def measure(policy: str, course: Course = FULL) -> Iterator[DecisionCost]:
    """Every workload at every number of nodes; each number in a new process, with a heap of its own."""
    context = multiprocessing.get_context("forkserver")  # its processes have nothing but these imports
    context.set_forkserver_preload([__name__])
    for nodes in course.node_counts:
        with ProcessPoolExecutor(1, context) as pool:
            yield from pool.submit(_measure_here, policy, nodes, course).result()


def profile(policy: str, nodes: int, file: Path, pods: int = FULL.pods) -> None:
    """Write the time of the `single` workload by function, as text."""
    engine, batches = engine_with(policy, nodes), list(steps("single", pods))
    run(engine, batches[:1])
    clock = cProfile.Profile(time.process_time)
    clock.runcall(run, engine, batches[1:])
    with file.open("w") as out:
        pstats.Stats(clock, stream=out).sort_stats("tottime").print_stats(60)


def engine_with(policy: str, nodes: int) -> Engine:
    """A leading engine with that many empty nodes."""
    engine = Engine(
        [Profile("eclectus", FifoOrder(), PLACE[policy](), FifoLine(), NoRelief(), NoCopies(), NoHold())],
        RosellaLearn(),
    )
    engine.step([*map(NodeSeen, make_nodes(nodes)), Resumed()], 0.0)
    return engine


def steps(workload: Workload, pods: int) -> Iterator[list[Event]]:
    """The events of each step. The first step has one pod of each class."""
    classes = CLASSES if workload == "mixed" else 1
    seen: Iterator[Event] = map(TaskSeen, make_tasks(pods + classes, classes))
    yield list(itertools.islice(seen, classes))
    while batch := list(itertools.islice(seen, 1 if workload == "single" else BURST)):
        yield batch


def run(engine: Engine, batches: Sequence[list[Event]]) -> int:
    """Run a step for each batch, answering the commands of the step before; returns the number of binds.

    Then steps that are due, as long as pods are without a node: some policies decide in rounds.
    """
    bound, answers, now, pods = 0, list[Event](), 1.0, sum(map(len, batches))
    for batch in [*batches, *([[]] * STEPS_MORE)]:
        now += STEP_SECONDS
        if not batch:
            due = engine.next_step_at()
            if not answers and (bound == pods or due is None):
                break
            now = max(now, now if answers or due is None else due)
        commands = engine.step([*answers, *batch], now)
        binds = [one for one in commands if isinstance(one, Bind)]
        bound += len(binds)
        answers = [BindConfirmed(bind.uid, bind.node) for bind in binds]
        answers += [solved(engine, one) for one in commands if isinstance(one, Solve)]
    return bound


def make_nodes(count: int) -> Iterator[Node]:
    """Nodes of one size in three zones."""
    amounts = (("cpu", 32_000), ("ephemeral-storage", 100 * GIB), ("memory", 128 * GIB), ("pods", 110))
    for index in range(count):
        name = f"node-{index:05}"
        labels = (("kubernetes.io/hostname", name), ("topology.kubernetes.io/zone", f"zone-{index % 3}"))
        yield Node(name, amounts, labels)


def make_tasks(count: int, classes: int) -> Iterator[Task]:
    """Pods of `classes` classes that differ in requests: first one of each, then at random."""
    random_stream = random.Random(7)
    specs = [_spec(kind) for kind in range(classes)]
    for index in range(count):
        spec = specs[index] if index < classes else random_stream.choice(specs)
        yield Task(f"uid-{index:06}", "bench", f"pod-{index:06}", spec=spec, created=0.5)


def _spec(kind: int) -> Spec:
    """A pod spec; every third class selects a zone."""
    cpu, memory = 100 + 10 * kind, 200 * 2**20
    zone = (("topology.kubernetes.io/zone", f"zone-{kind // 3 % 3}"),) if kind % 3 == 1 else ()
    return Spec((("cpu", cpu), ("memory", memory)), (cpu, memory), node_selector=zone)


def _measure_here(policy: str, nodes: int, course: Course) -> list[DecisionCost]:
    costs = []
    for workload in WORKLOADS:
        repeats = [_once(policy, workload, nodes, course.pods) for _ in range(course.repeats)]
        decision, new_class = (statistics.median(column) for column in zip(*repeats, strict=True))
        costs.append(DecisionCost(policy, workload, nodes, decision, new_class, peak_mebibytes()))
    return costs


def _once(policy: str, workload: Workload, nodes: int, pods: int) -> tuple[float, float]:
    """Microseconds of a decision, and milliseconds of a new class."""
    engine, (first, *rest) = engine_with(policy, nodes), list(steps(workload, pods))
    gc.collect()
    began = time.process_time()
    bound = run(engine, [first])
    warmed = time.process_time()
    bound += run(engine, rest)
    ended = time.process_time()
    wanted = pods + len(first)
    if bound != wanted:
        raise RuntimeError(
            f"{policy}, {workload}: only {bound} of {wanted} pods were placed on {nodes} empty nodes;"
            " this is a defect of the policy or of the engine"
        )
    return (ended - warmed) / pods * 1e6, (warmed - began) / len(first) * 1e3
