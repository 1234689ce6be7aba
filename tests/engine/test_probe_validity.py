"""A probe that holds no room counts as gone once a real pod has taken the room that it stands for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.model.events import NodeGone, NodeSeen, TaskGone, TaskSeen
from eclectus.model.objects import Task
from worlds import World

ROOM = (("cpu", 1000), ("memory", 2**20))


class Diary(ExactSpeeds):
    """Writes down what it learns, and who runs."""

    def __init__(self) -> None:
        super().__init__({})
        self.running: set[str] = set()

    def started(self, uid: str, row: int, workload: str, now: float) -> None:
        self.running.add(uid)

    def left(self, uid: str, now: float) -> None:
        self.running.discard(uid)


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
def world(diary: Diary) -> World:
    """Two nodes of two cores."""
    return World(make_engine(learn=diary), make_node("n0", cpu=2), make_node("n1", cpu=2))


def on(name: str, cpu: float = 0, node: str = "n0", **fields: Any) -> Task:
    return replace(make_task(name, cpu=cpu), node=node, phase="Running", started=0.0, **fields)


PROBE = on("probe", notional_requests=ROOM)
DONE = replace(PROBE, phase="Succeeded", finished=5.0)


def test_a_probe_that_keeps_its_room_teaches(world: World, diary: Diary) -> None:
    world.step(TaskSeen(PROBE), TaskSeen(on("beside", 1)), TaskSeen(on("there", 2, "n1")))
    assert "uid-probe" in diary.running
    world.step(TaskSeen(DONE))
    assert [sample.seconds for sample in diary.seen] == [5.0]
    assert "uid-probe" not in diary.running


def test_one_that_has_lost_it_teaches_nothing_and_runs_no_more(world: World, diary: Diary) -> None:
    world.step(TaskSeen(PROBE))
    world.step(TaskSeen(on("real", 1.01)))
    assert diary.running == {"uid-real"}
    world.step(TaskSeen(PROBE), TaskSeen(DONE))
    assert (diary.seen, diary.running) == ([], {"uid-real"})


def test_what_is_lost_stays_lost(world: World, diary: Diary) -> None:
    world.step(TaskSeen(PROBE))
    world.step(TaskSeen(on("real", 2)))
    world.step(TaskGone("uid-real"))
    world.step(TaskSeen(PROBE), TaskSeen(DONE))
    assert diary.seen == []


def test_where_there_was_no_room_from_the_first_it_teaches_nothing(world: World, diary: Diary) -> None:
    world.step(TaskSeen(on("real", 1.5)))
    world.step(TaskSeen(PROBE))
    world.step(TaskSeen(DONE))
    assert (diary.seen, diary.running) == ([], {"uid-real"})


def test_the_next_one_is_another_matter(world: World, diary: Diary) -> None:
    world.step(TaskSeen(PROBE))
    world.step(TaskSeen(on("real", 2)))
    world.step(TaskSeen(DONE), TaskGone("uid-real"))
    again = on("again", notional_requests=ROOM)
    world.step(TaskSeen(again))
    world.step(TaskSeen(replace(again, phase="Succeeded", finished=3.0)))
    assert [sample.seconds for sample in diary.seen] == [3.0]


def test_a_probe_that_stands_for_nothing_holds_its_room(world: World, diary: Diary) -> None:
    holding = on("probe", 1)
    world.step(TaskSeen(holding))
    world.step(TaskSeen(on("real", 2)))
    world.step(TaskSeen(replace(holding, phase="Succeeded", finished=5.0)))
    assert len(diary.seen) == 1


def test_a_node_that_goes_and_comes_back_is_no_trouble(world: World, diary: Diary) -> None:
    world.step(TaskSeen(PROBE))
    world.step(NodeGone("n0"))
    world.step(TaskSeen(on("real", 2)))
    world.step(NodeSeen(make_node("n0", cpu=2)))
    world.step(TaskSeen(PROBE), TaskSeen(DONE))
    assert diary.seen == []
