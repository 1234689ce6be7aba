"""A task that another attempt has overtaken teaches the learner: how fast its node is at most.

Such a pod is deleted and never ends by itself. Would only ends teach, then a node of which all tasks are
overtaken would count as fast as it was once, for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import Completion
from eclectus.model.events import NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.learned import LearnedNode
from eclectus.policies.rosella import RosellaLearn

NODES, SLOTS, SECONDS, FACTOR, SLOW_FROM = 6, 2, 10.0, 4.0, 500.0


def overtake(engine: Engine, name: str, began: float, now: float, **fields: Any) -> None:
    """A copy of the pod on n0, which runs on n1, ends; then the pod is deleted."""
    task = make_task(name, workload="w", node="n0", phase="Running", started=began)
    copy = make_task(f"{name}-copy", workload="w", node="n1", phase="Running", started=now - SECONDS)
    copy = replace(copy, **{"copy_of": task.uid, **fields})
    engine.step([TaskSeen(copy)], now)
    engine.step([TaskSeen(replace(copy, phase="Succeeded", finished=now)), TaskGone(copy.uid)], now)
    engine.step([TaskSeen(replace(task, deleting=True)), TaskGone(task.uid)], now)


def learned(overtaken_after: Callable[[float], float]) -> dict[str, LearnedNode]:
    """Six nodes with two tasks each, all of 10 s, for 1,500 s; n0 becomes four times slower after 500 s.

    `overtaken_after`: when it started -> after how many seconds a copy of a slow task ends elsewhere.
    """
    engine = make_engine(learn=RosellaLearn())
    engine.step([*(NodeSeen(make_node(f"n{at}", cpu=SLOTS)) for at in range(NODES)), Resumed()], 0.0)
    serials, ends, now = count(), list[tuple[float, int, int, float, bool]](), 0.0

    def start(row: int) -> None:
        number, is_slow = next(serials), row == 0 and now >= SLOW_FROM
        task = make_task(f"p{number}", workload="w", node=f"n{row}", phase="Running", started=now)
        engine.step([TaskSeen(task)], now)
        seconds, most = SECONDS * (FACTOR if is_slow else 1.0), overtaken_after(now)
        loses = is_slow and most < seconds
        heappush(ends, (now + (most if loses else seconds), number, row, now, loses))

    for row in range(NODES):
        for _ in range(SLOTS):
            start(row)
    while now < 1500.0:
        now, number, row, began, loses = heappop(ends)
        if loses:
            overtake(engine, f"p{number}", began, now)
        else:
            task = make_task(f"p{number}", workload="w", node=f"n{row}", started=began, finished=now)
            engine.step([TaskSeen(replace(task, phase="Succeeded"))], now)
        start(row)
    return {each.node: each for each in engine.learn.learned_nodes()}


@pytest.mark.parametrize(
    "overtaken_after",
    [
        pytest.param(lambda began: 25.0, id="when it is late"),
        pytest.param(lambda began: 25.0 if began < 800.0 else 12.0, id="early, once the node is known"),
        pytest.param(lambda began: 100.0, id="never"),
    ],
)
def test_a_node_four_times_slower_is_learned_within_a_third_and_is_live(
    overtaken_after: Callable[[float], float],
) -> None:
    nodes = learned(overtaken_after)
    others = sorted(each.speed for node, each in nodes.items() if node != "n0")
    assert nodes["n0"].speed / others[len(others) // 2] == pytest.approx(1 / FACTOR, rel=1 / 3)
    assert {each.state for each in nodes.values()} == {"live"}


class Overtaken(ExactSpeeds):
    """Records which runs were overtaken."""

    def __init__(self) -> None:
        super().__init__({})
        self.overtaken_runs: list[Completion] = []

    def overtaken(self, run: Completion) -> None:
        self.overtaken_runs.append(run)


def trial(**fields: Any) -> list[tuple[str, float]]:
    learn = Overtaken()
    engine = make_engine(learn=learn)
    engine.step([NodeSeen(make_node("n0")), NodeSeen(make_node("n1")), Resumed()], 0.0)
    engine.step([TaskSeen(make_task("a", workload="w", node="n0", phase="Running", started=3.0))], 3.0)
    overtake(engine, "a", 3.0, 28.0, **fields)
    return [(run.uid, run.seconds) for run in learn.overtaken_runs]


def test_the_run_so_far_of_the_attempt_that_lost_counts() -> None:
    assert trial() == [("uid-a", 25.0)]


@pytest.mark.parametrize(
    "fields",
    [{"namespace": "other"}, {"workload": "other"}, {"copy_of": "uid-b"}, {"copy_of": ""}],
    ids=lambda fields: next(iter(fields)),
)
def test_what_is_no_copy_of_the_same_work_overtakes_nothing(fields: dict[str, str]) -> None:
    """A label may be written by anybody who may create pods, where admission does not forbid it."""
    assert trial(**fields) == []


def test_a_copy_loses_likewise() -> None:
    learn = Overtaken()
    engine = make_engine(learn=learn)
    engine.step([NodeSeen(make_node("n0")), NodeSeen(make_node("n1")), Resumed()], 0.0)
    task = make_task("a", workload="w", node="n0", phase="Running", started=3.0)
    copy = make_task("a-copy", workload="w", node="n1", phase="Running", started=20.0, copy_of="uid-a")
    engine.step([TaskSeen(copy), TaskSeen(task)], 20.0)
    engine.step([TaskSeen(replace(task, phase="Succeeded", finished=28.0))], 28.0)
    engine.step([TaskSeen(replace(copy, phase="Succeeded", finished=28.1))], 28.5)
    assert [(run.uid, run.seconds) for run in learn.overtaken_runs] == [("uid-a-copy", 8.0)]
