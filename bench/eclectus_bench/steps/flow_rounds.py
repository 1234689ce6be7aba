"""What a full round of Quincy costs the engine: to make its network, and to commit what was answered.

The solver is a process of its own; its time is measured here where OR-Tools is installed, and what it answers
then is committed. Otherwise pods are sent to nodes in turn, which costs the engine as much.
"""

import time
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from eclectus.framework import FlowProblem
from eclectus.model.commands import Bind, Command, Solve
from eclectus.model.events import BindConfirmed, Solved, TaskGone, TaskSeen
from eclectus.model.objects import Task
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.quincy.place import ROUND_MOST, Quincy
from eclectus.solver import flow
from eclectus_bench.steps.driver import Driver, make_node, make_spec, make_task

CLASSES = 20
WITHIN_SECONDS = 0.05  # of the interval of rounds, so that pods that come wait for the next one


class Round(NamedTuple):
    """CPU time in milliseconds, and the arcs of the network. `solved`: with routes; 0 without OR-Tools."""

    made: float
    solved: float
    committed: float
    arcs: int


def rounds(nodes: int, jobs: int, pods: int, count: int) -> Iterator[Round]:
    """So many rounds, each of new pods of as many jobs. One before them, of new classes, is left out."""
    cpu = 1_000 * max(4, 2 * pods // nodes)  # all have room
    driver = Driver(FifoOrder(), [make_node(at, cpu=cpu) for at in range(nodes)], place=Quincy())
    for number in range(count + 1):
        tasks = [_task(number, at, jobs) for at in range(min(pods, ROUND_MOST))]
        found = _round(driver, nodes, tasks)
        if number:
            yield found


def _task(number: int, at: int, jobs: int) -> Task:
    kind = at % jobs % CLASSES
    task = make_task(f"pod-{number}-{at}", make_spec(900 + kind))
    return replace(task, job=f"job-{at % jobs}", workload=f"bench/work-{kind}")


def _round(driver: Driver, nodes: int, tasks: list[Task]) -> Round:
    engine, made = driver.engine, 0.0
    driver.now += WITHIN_SECONDS
    asked = _asked(engine.step([TaskSeen(task) for task in tasks], driver.now))
    if not asked:  # as the interval is not over
        driver.now += 1.0
        began = time.process_time()
        asked = _asked(engine.step([], driver.now))
        made = time.process_time() - began
    problem = engine.problem(asked[0].serial)
    if problem is None:
        raise RuntimeError("nobody waits for the answer")
    began = time.process_time()
    answer = (
        flow.solved(asked[0].serial, problem) if flow.IS_INSTALLED else _in_turn(asked[0], problem, nodes)
    )
    solved = time.process_time() - began if flow.IS_INSTALLED else 0.0
    began = time.process_time()
    binds = [each for each in engine.step([answer], driver.now) if isinstance(each, Bind)]
    committed = time.process_time() - began
    if len(binds) != len(tasks):
        raise RuntimeError(f"{len(binds)} of {len(tasks)} pods were bound")
    engine.step([BindConfirmed(each.uid, each.node) for each in binds], driver.now)
    engine.step([TaskGone(task.uid) for task in tasks], driver.now)
    return Round(made * 1e3, solved * 1e3, committed * 1e3, len(problem.tails))


def _asked(commands: list[Command]) -> list[Solve]:
    return [each for each in commands if isinstance(each, Solve)]


def _in_turn(asked: Solve, problem: FlowProblem, nodes: int) -> Solved:
    """An answer that sends each pod to another node; those of the network are the last before its sink."""
    first, routes, at = len(problem.supplies) - 1 - nodes, list[tuple[int, int, int]](), 0
    for group, pods in enumerate(problem.supplies[:first].tolist()):
        for _ in range(max(pods, 0)):
            routes.append((group, first + at % nodes, 1))
            at += 1
    return Solved(asked.serial, "optimal", tuple(routes))
