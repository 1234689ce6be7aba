"""A task that has not ended teaches the learner: how fast its node is at most.

One that another attempt has overtaken is deleted and never ends by itself, as others that are deleted. Would
only ends teach, then a node of which all tasks are overtaken would count as fast as it was once, for ever.
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
from eclectus.model.commands import MarkStraggling
from eclectus.model.events import NodeSeen, PodsListed, ProgressSaid, Resumed, TaskGone, TaskSeen
from eclectus.model.learned import LearnedNode
from eclectus.model.objects import Task
from eclectus.policies.rosella import RosellaLearn
from eclectus.policies.speculate.late import Late
from eclectus.policies.speculate.none import NoCopies

NODES, SLOTS, SECONDS, FACTOR, SLOW_FROM = 6, 2, 10.0, 4.0, 500.0


def overtake(engine: Engine, name: str, began: float, now: float, **fields: Any) -> None:
    """A copy of the pod on n0, which runs on n1, ends; then the pod is deleted."""
    task = make_task(name, workload="w", node="n0", phase="Running", started=began)
    copy = make_task(f"{name}-copy", workload="w", node="n1", phase="Running", started=now - SECONDS)
    copy = replace(copy, **{"copy_of": task.uid, **fields})
    engine.step([TaskSeen(copy)], now)
    engine.step([TaskSeen(replace(copy, phase="Succeeded", finished=now)), TaskGone(copy.uid)], now)
    engine.step([TaskSeen(replace(task, deleting=True)), TaskGone(task.uid)], now)


def delete(engine: Engine, name: str, began: float, now: float) -> None:
    """The pod on n0 is deleted, and its container ends a second later."""
    task = make_task(name, workload="w", node="n0", phase="Running", started=began, speculative=True)
    engine.step([TaskSeen(replace(task, deleting=True))], now)
    failed = replace(task, deleting=True, phase="Failed", finished=now + 1.0)
    engine.step([TaskSeen(failed), TaskGone(task.uid)], now + 1.0)


def learned(overtaken_after: Callable[[float], float], *, by_copies: bool = True) -> dict[str, LearnedNode]:
    """Six nodes with two tasks each, all of 10 s, for 1,500 s; n0 becomes four times slower after 500 s.

    `overtaken_after`: when it started -> after how many seconds a copy of a slow task ends elsewhere, or the
    task is deleted without one.
    """
    engine = make_engine(learn=RosellaLearn(), speculate=NoCopies() if by_copies else Late())
    engine.step([*(NodeSeen(make_node(f"n{at}", cpu=SLOTS)) for at in range(NODES)), Resumed()], 0.0)
    serials, ends, now = count(), list[tuple[float, int, int, float, bool]](), 0.0

    def start(row: int) -> None:
        number, is_slow = next(serials), row == 0 and now >= SLOW_FROM
        task = make_task(f"p{number}", workload="w", node=f"n{row}", phase="Running", started=now)
        engine.step([TaskSeen(replace(task, speculative=True))], now)
        seconds, most = SECONDS * (FACTOR if is_slow else 1.0), overtaken_after(now)
        loses = is_slow and most < seconds
        heappush(ends, (now + (most if loses else seconds), number, row, now, loses))

    for row in range(NODES):
        for _ in range(SLOTS):
            start(row)
    while now < 1500.0:
        now, number, row, began, loses = heappop(ends)
        if loses and by_copies:
            overtake(engine, f"p{number}", began, now)
        elif loses:
            delete(engine, f"p{number}", began, now)
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


def one_slow_node(policy: Any = None, **fields: Any) -> Engine:
    """Six nodes with tasks of 10 s that have ended; on n0, of which nothing is known, two begin at 100 s."""
    engine = make_engine(learn=RosellaLearn(), speculate=policy or Late())
    engine.step([*(NodeSeen(make_node(f"n{at}", cpu=SLOTS)) for at in range(NODES)), Resumed()], 0.0)
    given = {"workload": "w", "phase": "Running", "started": 50.0, "speculative": True}
    done = [make_task(f"done{at}", node=f"n{1 + at % (NODES - 1)}", **given) for at in range(40)]
    engine.step(list(map(TaskSeen, done)), 50.0)
    for at, task in enumerate(done):
        finished = 59.0 + at / 20.0
        engine.step([TaskSeen(replace(task, phase="Succeeded", finished=finished))], finished)
    for task in two_on_n0(**fields):
        engine.step([TaskSeen(task)], 100.0)
    return engine


def two_on_n0(**fields: Any) -> list[Task]:
    given = {"workload": "w", "node": "n0", "phase": "Running", "started": 100.0, "speculative": True}
    return [make_task(name, **given | fields) for name in ("a", "b")]


def relative_speed(engine: Engine) -> float:
    """What placement believes of n0, beside the others."""
    rate = engine._state.learn.speeds("w").rate
    return float(rate[0] / sorted(rate[1:NODES])[2])


def wait(engine: Engine, until: float) -> None:
    now = 100.0
    while (at := engine.next_step_at()) is not None and at <= until:
        now = max(at, now)
        engine.step([], now)


def test_tasks_that_run_for_too_long_teach_before_any_of_them_ends() -> None:
    engine = one_slow_node()
    wait(engine, 111.0)
    early = relative_speed(engine)
    wait(engine, 139.0)
    assert early > 0.8
    assert relative_speed(engine) < 0.45, "of 1/4; two samples that have not ended beside a prior of one"


def test_what_ends_beside_a_task_that_is_late_shows_that_its_node_is_not_slow() -> None:
    engine = one_slow_node()
    wait(engine, 119.0)
    slow = relative_speed(engine)
    beside = make_task("beside", workload="w", node="n0", phase="Running", started=110.0)
    engine.step([TaskSeen(beside)], 119.5)
    engine.step([TaskSeen(replace(beside, phase="Succeeded", finished=120.0))], 120.0)
    wait(engine, 128.0)
    assert slow < 0.6
    assert relative_speed(engine) > 0.8


def test_they_teach_what_they_say_of_how_far_they_are() -> None:
    """At 20 s with nine tenths done: two samples of 22.2 s beside a prior of one of 10 s."""
    said, silent = one_slow_node(), one_slow_node()
    said.step([ProgressSaid("uid-a", 0.9), ProgressSaid("uid-b", 0.9)], 100.0)
    for engine in (said, silent):
        wait(engine, 120.0)
    assert relative_speed(said) == pytest.approx(3 * 10.0 / (10.0 + 2 * 22.2), rel=0.05)
    assert relative_speed(silent) < 0.75 * relative_speed(said)


def test_tasks_that_have_not_opted_in_teach_by_their_ends_alone() -> None:
    engine = one_slow_node(speculative=False)
    before = relative_speed(engine)
    wait(engine, 139.0)
    assert relative_speed(engine) == before


@pytest.mark.parametrize("ends", [{"deleting": True}, {"phase": "Failed", "finished": 121.0}], ids=str)
def test_what_ran_counts_no_more_when_it_is_gone(ends: dict[str, Any]) -> None:
    """A pod that was deleted counts for what it would have taken, one that has failed for nothing."""
    engine = one_slow_node()
    wait(engine, 120.0)
    events = [TaskSeen(replace(task, **ends)) for task in two_on_n0()]
    engine.step(events, 121.0)
    engine.step([TaskGone(task.uid) for task in two_on_n0()], 122.0)
    after = relative_speed(engine)
    assert (after < 0.5) is ("deleting" in ends)
    assert (after > 0.7) is ("phase" in ends)
    late = [space.rates._late for _, space in engine._state.learn.namespaces.items()]
    assert not any(late)


def test_a_class_that_is_changed_while_a_pod_runs_leaves_nothing_behind() -> None:
    engine = one_slow_node()
    wait(engine, 120.0)
    for task in two_on_n0(workload="shared"):
        engine.step([TaskSeen(task)], 120.5)
    wait(engine, 135.0)
    assert relative_speed(engine) > 0.8


def test_what_runs_counts_once_when_it_ends() -> None:
    """The same as where nobody has looked while it ran."""
    looked, blind = one_slow_node(), one_slow_node(NoCopies())
    wait(looked, 139.0)
    for engine in (looked, blind):
        for task in two_on_n0():
            engine.step(
                [TaskSeen(replace(task, phase="Succeeded", finished=140.0)), TaskGone(task.uid)], 140.0
            )
    assert relative_speed(looked) == pytest.approx(relative_speed(blind), rel=0.05)


def test_a_task_that_is_late_is_not_excused_by_what_it_shows_of_its_node() -> None:
    """It is marked beyond 1.5 times what was expected when it began, though more is expected there now."""
    engine = one_slow_node()
    marked = list[float]()
    now = 100.0
    while (at := engine.next_step_at()) is not None and at <= 139.0:
        now = max(at, now)
        marked += [now - 100.0 for each in engine.step([], now) if isinstance(each, MarkStraggling)]
    assert marked
    assert marked[0] <= 1.25 * 1.6 * SECONDS


@pytest.mark.parametrize("age", [25.0, 35.0])
def test_a_node_whose_tasks_are_all_deleted_before_they_end_is_learned_within_a_third(age: float) -> None:
    """Without copies, as by a deadline; where only ends teach it stays as fast as it was once, for ever."""
    nodes = learned(lambda began: age, by_copies=False)
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


def test_nothing_is_kept_of_an_attempt_that_is_gone_where_no_profile_makes_copies() -> None:
    """A uid that comes back, as after a restore of etcd, counts anew."""
    learn = Overtaken()
    engine = make_engine(learn=learn)
    engine.step([NodeSeen(make_node("n0")), NodeSeen(make_node("n1")), Resumed()], 0.0)
    for began in (3.0, 103.0):
        task = make_task("a", workload="w", node="n0", phase="Running", started=began)
        engine.step([PodsListed(), TaskSeen(task)], began)
        overtake(engine, "a", began, began + 25.0)
    assert [(run.uid, run.seconds) for run in learn.overtaken_runs] == [("uid-a", 25.0)] * 2


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
