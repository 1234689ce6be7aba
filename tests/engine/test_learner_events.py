"""What the engine tells a learner: only who cares is told, and only of what teaches."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.model.events import NodeSeen, Resumed, TaskGone, TaskSeen
from eclectus.model.objects import Task
from worlds import World


class Diary(ExactSpeeds):
    """Writes down all it is told."""

    def __init__(self) -> None:
        super().__init__({})
        self.lines: list[tuple[Any, ...]] = []

    def arrived(self, workload: str, now: float) -> None:
        self.lines.append(("arrived", workload, now))

    def started(self, uid: str, row: int, workload: str, now: float) -> None:
        self.lines.append(("started", uid, row, workload, now))

    def left(self, uid: str, now: float) -> None:
        self.lines.append(("left", uid, now))


def begun() -> tuple[World, Diary]:
    diary = Diary()
    return World(make_engine(learn=diary), make_node("n0"), make_node("n1")), diary


def running(task: Task, node: str = "n0") -> Task:
    return replace(task, node=node, phase="Running", started=0.0)


TASK = make_task("t", workload="web")


def test_a_task_arrives_once_however_often_it_is_seen() -> None:
    world, diary = begun()
    world.refuse = lambda bind: "not now"
    world.add(TASK)
    world.step(TaskSeen(replace(TASK, priority=3)), after=1.0)
    world.sleep(100.0)
    assert [line for line in diary.lines if line[0] == "arrived"] == [("arrived", "web", 0.0)]


def test_it_starts_when_its_container_is_seen_running_not_when_it_is_bound() -> None:
    world, diary = begun()
    world.add(TASK)
    assert [line[0] for line in diary.lines] == ["arrived"]
    world.step(TaskSeen(running(world.tasks["t"], world.node_of("t"))), after=2.0)
    row = world.engine._state.cluster.rows[world.node_of("t")]
    assert diary.lines[1:] == [("started", "uid-t", row, "web", 2.0)]


@pytest.mark.parametrize("end", ["Succeeded", "Failed", "gone"])
def test_it_leaves_however_it_ends(end: str) -> None:
    world, diary = begun()
    world.step(TaskSeen(running(TASK)))
    last = TaskGone("uid-t") if end == "gone" else TaskSeen(replace(running(TASK), phase=end))  # type: ignore[arg-type]
    world.step(last, after=3.0)
    world.step(last, after=1.0)
    assert [line for line in diary.lines if line[0] == "left"][:1] == [("left", "uid-t", 3.0)]


def test_services_are_neither_work_that_arrives_nor_work_that_is_to_end() -> None:
    world, diary = begun()
    service = make_task("s", long_running=True)
    world.add(service)
    world.step(TaskSeen(running(service)))
    assert diary.lines == []


FOREIGN = replace(TASK, profile="other")


def test_work_of_other_schedulers_arrives_when_they_bind_it() -> None:
    """What waits for a scheduler that is dead is no load."""
    world, diary = begun()
    world.step(TaskSeen(FOREIGN))
    world.step(TaskSeen(replace(FOREIGN, labels=(("a", "b"),))), after=1.0)
    assert diary.lines == []
    world.step(TaskSeen(replace(FOREIGN, node="n0")), after=1.0)
    world.step(TaskSeen(running(FOREIGN)), after=1.0)
    assert [line[0] for line in diary.lines] == ["arrived", "started"]
    assert diary.lines[0] == ("arrived", "web", 2.0)


def test_what_ran_before_we_looked_has_not_just_come() -> None:
    world, diary = begun()
    world.step(TaskSeen(running(FOREIGN)))
    assert [line[0] for line in diary.lines] == ["started"]


def test_work_of_others_that_went_unbound_has_not_come() -> None:
    world, diary = begun()
    world.step(TaskSeen(FOREIGN))
    world.step(TaskGone(FOREIGN.uid))
    assert [line[0] for line in diary.lines] == ["left"]
    assert not world.engine._event_handlers._foreign_pending


def test_of_nodes_not_known_nothing_is_told() -> None:
    world, diary = begun()
    world.step(TaskSeen(running(TASK, "nowhere")))
    assert diary.lines == []


@pytest.mark.parametrize(
    ("phase", "seconds", "teaches"),
    [("Succeeded", 5.0, True), ("Succeeded", 0.0, False), ("Failed", 5.0, False), ("Unknown", 5.0, False)],
)
def test_only_what_ran_to_its_end_is_a_sample(phase: str, seconds: float, teaches: bool) -> None:
    """Failed, evicted and killed pods are censored: how long they would have run nobody knows."""
    world, diary = begun()
    world.step(TaskSeen(running(TASK)))
    world.step(TaskSeen(replace(running(TASK), phase=phase, finished=seconds)))  # type: ignore[arg-type]
    assert len(diary.seen) == teaches


def test_a_pod_deleted_while_it_runs_is_no_sample() -> None:
    world, diary = begun()
    world.step(TaskSeen(running(TASK)))
    world.step(TaskGone("uid-t"))
    assert diary.seen == []


class Grumpy(Diary):
    """Fails at whatever it is told."""

    def started(self, uid: str, row: int, workload: str, now: float) -> None:
        raise ValueError("too much")

    left = arrived = started  # type: ignore[assignment]


def test_a_learner_that_fails_costs_nobody_anything() -> None:
    engine = make_engine(learn=Grumpy())
    world = World(engine, make_node("n0"))
    world.add(TASK)
    world.step(TaskSeen(running(TASK)))
    world.end("t")
    assert {fault.policy for fault in world.faults} == {"Grumpy"}
    assert world.binds


def test_a_learner_that_does_not_care_is_not_told() -> None:
    engine = make_engine(learn=ExactSpeeds({}))
    engine.step([Resumed(), NodeSeen(make_node("n0")), TaskSeen(TASK)], 0.0)
    feed = engine._learner_feed
    assert (feed._arrived, feed._started, feed._left) == (None, None, None)
