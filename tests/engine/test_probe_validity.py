"""A probe with zero requests counts as gone once real pods use the room of its notional requests."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.framework import Traits
from eclectus.model.commands import EndProbe
from eclectus.model.events import NodeGone, NodeSeen, TaskGone, TaskSeen
from eclectus.model.objects import Amounts, Task
from worlds import World

NOTIONAL = (("cpu", 1000), ("memory", 2**20))


class RecordingLearner(ExactSpeeds):
    """Records samples and running tasks."""

    traits = Traits(needs=frozenset({"start times", "task ends"}))

    def __init__(self) -> None:
        super().__init__({})
        self.running: set[str] = set()

    def started(self, uid: str, row: int, workload: str, now: float, requests: Amounts) -> None:
        self.running.add(uid)

    def left(self, uid: str, now: float) -> None:
        self.running.discard(uid)


@pytest.fixture
def learner() -> RecordingLearner:
    return RecordingLearner()


@pytest.fixture
def world(learner: RecordingLearner) -> World:
    """Two nodes with two cores each."""
    return World(make_engine(learn=learner), make_node("n0", cpu=2), make_node("n1", cpu=2))


def on(name: str, cpu: float = 0, node: str = "n0", **fields: Any) -> Task:
    return replace(make_task(name, cpu=cpu), node=node, phase="Running", started=0.0, **fields)


PROBE = on("probe", notional_requests=NOTIONAL)
COMPLETED = replace(PROBE, phase="Succeeded", finished=5.0)


def test_a_probe_that_keeps_its_room_is_a_sample(world: World, learner: RecordingLearner) -> None:
    world.step(TaskSeen(PROBE), TaskSeen(on("beside", 1)), TaskSeen(on("there", 2, "n1")))
    assert "uid-probe" in learner.running
    world.step(TaskSeen(COMPLETED))
    assert [sample.seconds for sample in learner.seen] == [5.0]
    assert "uid-probe" not in learner.running


def test_a_probe_that_lost_its_room_is_no_sample(world: World, learner: RecordingLearner) -> None:
    world.step(TaskSeen(PROBE))
    world.step(TaskSeen(on("real", 1.01)))
    assert learner.running == {"uid-real"}
    world.step(TaskSeen(PROBE), TaskSeen(COMPLETED))
    assert (learner.seen, learner.running) == ([], {"uid-real"})


def test_a_probe_that_lost_its_room_stays_invalid(world: World, learner: RecordingLearner) -> None:
    world.step(TaskSeen(PROBE))
    world.step(TaskSeen(on("real", 2)))
    world.step(TaskGone("uid-real"))
    world.step(TaskSeen(PROBE), TaskSeen(COMPLETED))
    assert learner.seen == []


def test_a_probe_that_never_had_its_room_is_no_sample(world: World, learner: RecordingLearner) -> None:
    world.step(TaskSeen(on("real", 1.5)))
    world.step(TaskSeen(PROBE))
    world.step(TaskSeen(COMPLETED))
    assert (learner.seen, learner.running) == ([], {"uid-real"})


def test_the_next_probe_of_the_node_is_a_sample(world: World, learner: RecordingLearner) -> None:
    world.step(TaskSeen(PROBE))
    world.step(TaskSeen(on("real", 2)))
    world.step(TaskSeen(COMPLETED), TaskGone("uid-real"))
    again = on("again", notional_requests=NOTIONAL)
    world.step(TaskSeen(again))
    world.step(TaskSeen(replace(again, phase="Succeeded", finished=3.0)))
    assert [sample.seconds for sample in learner.seen] == [3.0]


def test_a_probe_without_notional_requests_is_a_sample(world: World, learner: RecordingLearner) -> None:
    holding = on("probe", 1)
    world.step(TaskSeen(holding))
    world.step(TaskSeen(on("real", 2)))
    world.step(TaskSeen(replace(holding, phase="Succeeded", finished=5.0)))
    assert len(learner.seen) == 1


def test_a_node_deleted_and_created_again_is_no_error(world: World, learner: RecordingLearner) -> None:
    world.step(TaskSeen(PROBE))
    world.step(NodeGone("n0"))
    world.step(TaskSeen(on("real", 2)))
    world.step(NodeSeen(make_node("n0", cpu=2)))
    world.step(TaskSeen(PROBE), TaskSeen(COMPLETED))
    assert learner.seen == []


# -- ending probes before a bind -------------------------------------------------------------------

END = EndProbe("uid-probe", "default", "probe")


def pinned(name: str, cpu: float) -> Task:
    """A pod that only n0 may run."""
    return make_task(name, cpu=cpu, node_name="n0")


def test_the_bind_that_takes_a_probes_room_ends_it_first(world: World) -> None:
    world.step(TaskSeen(PROBE))
    world.step(TaskSeen(pinned("small", 1)), TaskSeen(pinned("large", 0.5)))
    assert [bind.before for bind in world.binds] == [(), (END,)]


def test_a_probe_is_ended_once(world: World) -> None:
    world.step(TaskSeen(PROBE))
    world.step(TaskSeen(pinned("one", 1.5)), TaskSeen(pinned("two", 0.25)))
    world.step(TaskSeen(pinned("three", 0.25)))
    assert [bind.before for bind in world.binds] == [(END,), (), ()]


def test_a_bind_to_another_node_ends_no_probe(world: World) -> None:
    world.step(TaskSeen(replace(PROBE, node="n1")))
    world.step(TaskSeen(pinned("real", 2)))
    assert [bind.before for bind in world.binds] == [()]
