"""What a learner is informed of: only of hooks it overrides, and only of pods it can learn from."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.framework import Completion, Traits
from eclectus.model.events import TaskGone, TaskSeen
from eclectus.model.objects import Amounts, Task
from worlds import World


class RecordingLearner(ExactSpeeds):
    """Records every call of a hook."""

    traits = Traits(needs=frozenset({"task arrivals", "start times", "task ends"}))

    def __init__(self) -> None:
        super().__init__({})
        self.calls: list[tuple[Any, ...]] = []
        self.requests: list[Amounts] = []  # of started tasks

    def arrived(self, workload: str, now: float) -> None:
        self.calls.append(("arrived", workload, now))

    def started(self, uid: str, row: int, workload: str, now: float, requests: Amounts) -> None:
        self.calls.append(("started", uid, row, workload, now))
        self.requests.append(requests)

    def left(self, uid: str, now: float) -> None:
        self.calls.append(("left", uid, now))


def make_world() -> tuple[World, RecordingLearner]:
    learner = RecordingLearner()
    return World(make_engine(learn=learner), make_node("n0"), make_node("n1")), learner


def running(task: Task, node: str = "n0") -> Task:
    return replace(task, node=node, phase="Running", started=0.0)


TASK = make_task("t", workload="web")


def test_a_task_arrives_once_however_often_it_is_seen() -> None:
    world, learner = make_world()
    world.refuse = lambda bind: "not now"
    world.add(TASK)
    world.step(TaskSeen(replace(TASK, priority=3)), after=1.0)
    world.sleep(100.0)
    assert [call for call in learner.calls if call[0] == "arrived"] == [("arrived", "web", 0.0)]


def test_a_task_starts_when_its_container_runs_not_when_it_is_bound() -> None:
    world, learner = make_world()
    world.add(TASK)
    assert [call[0] for call in learner.calls] == ["arrived"]
    world.step(TaskSeen(running(world.tasks["t"], world.node_of("t"))), after=2.0)
    row = world.engine._state.cluster.rows[world.node_of("t")]
    assert learner.calls[1:] == [("started", "uid-t", row, "web", 2.0)]


@pytest.mark.parametrize("end", ["Succeeded", "Failed", "gone"])
def test_a_task_leaves_however_it_ends(end: str) -> None:
    world, learner = make_world()
    world.step(TaskSeen(running(TASK)))
    last = TaskGone("uid-t") if end == "gone" else TaskSeen(replace(running(TASK), phase=end))  # type: ignore[arg-type]
    world.step(last, after=3.0)
    world.step(last, after=1.0)
    assert [call for call in learner.calls if call[0] == "left"][:1] == [("left", "uid-t", 3.0)]


def test_a_learner_is_not_informed_of_services() -> None:
    world, learner = make_world()
    service = make_task("s", long_running=True)
    world.add(service)
    world.step(TaskSeen(running(service)))
    assert learner.calls == []


FOREIGN = replace(TASK, profile="other")


def test_a_foreign_task_arrives_when_it_is_bound() -> None:
    """Pods that wait for a scheduler that may not run are no load."""
    world, learner = make_world()
    world.step(TaskSeen(FOREIGN))
    world.step(TaskSeen(replace(FOREIGN, labels=(("a", "b"),))), after=1.0)
    assert learner.calls == []
    world.step(TaskSeen(replace(FOREIGN, node="n0")), after=1.0)
    world.step(TaskSeen(running(FOREIGN)), after=1.0)
    assert [call[0] for call in learner.calls] == ["arrived", "started"]
    assert learner.calls[0] == ("arrived", "web", 2.0)


def test_a_foreign_task_first_seen_running_is_no_arrival() -> None:
    world, learner = make_world()
    world.step(TaskSeen(running(FOREIGN)))
    assert [call[0] for call in learner.calls] == ["started"]


def test_a_foreign_task_deleted_before_it_is_bound_is_no_arrival() -> None:
    world, learner = make_world()
    world.step(TaskSeen(FOREIGN))
    world.step(TaskGone(FOREIGN.uid))
    assert [call[0] for call in learner.calls] == ["left"]
    assert not world.engine._event_handlers._foreign_pending


def test_tasks_on_unknown_nodes_are_ignored() -> None:
    world, learner = make_world()
    world.step(TaskSeen(running(TASK, "nowhere")))
    assert learner.calls == []


@pytest.mark.parametrize(
    ("phase", "seconds", "is_sample"),
    [("Succeeded", 5.0, True), ("Succeeded", 0.0, False), ("Failed", 5.0, False), ("Unknown", 5.0, False)],
)
def test_only_a_task_that_succeeded_is_a_sample(phase: str, seconds: float, is_sample: bool) -> None:
    """Failed, evicted and killed pods are censored: how long they would have run is unknown."""
    world, learner = make_world()
    world.step(TaskSeen(running(TASK)))
    world.step(TaskSeen(replace(running(TASK), phase=phase, finished=seconds)))  # type: ignore[arg-type]
    assert len(learner.seen) == is_sample
    assert all(done.uid == "uid-t" for done in learner.seen), "the one that was seen running"


def test_a_pod_deleted_while_it_runs_is_no_sample() -> None:
    world, learner = make_world()
    world.step(TaskSeen(running(TASK)))
    world.step(TaskGone("uid-t"))
    assert learner.seen == []


class FaultyLearner(RecordingLearner):
    """Raises in every hook."""

    def started(self, uid: str, row: int, workload: str, now: float, requests: Amounts) -> None:
        raise ValueError("too much")

    left = arrived = started  # type: ignore[assignment]


def test_a_learner_that_fails_does_not_stop_scheduling() -> None:
    engine = make_engine(learn=FaultyLearner())
    world = World(engine, make_node("n0"))
    world.add(TASK)
    world.step(TaskSeen(running(TASK)))
    world.end("t")
    assert {fault.policy for fault in world.faults} == {"FaultyLearner"}
    assert world.binds


def test_hooks_that_a_learner_does_not_need_are_not_called() -> None:
    class Plain(RecordingLearner):
        traits = Traits()

    learner = Plain()
    world = World(make_engine(learn=learner), make_node("n0"))
    world.step(TaskSeen(running(TASK)))
    world.step(TaskGone("uid-t"))
    assert learner.calls == []


def test_the_learner_is_informed_of_requests_and_of_notional_ones() -> None:
    """A probe with zero requests does the work of a task, so it is compared with tasks."""
    world, learner = make_world()
    plain = running(make_task("plain", cpu=2))
    probe = replace(running(make_task("probe", cpu=0)), notional_requests=(("cpu", 2000),))
    world.step(TaskSeen(plain), TaskSeen(probe))
    assert learner.requests == [(("cpu", 2000),)] * 2
    world.step(TaskSeen(replace(plain, phase="Succeeded", finished=3.0)), after=3.0)
    assert [done.requests for done in learner.seen] == [(("cpu", 2000),)]


class Turnarounds(ExactSpeeds):
    """Keeps the turnaround of each completion."""

    def __init__(self) -> None:
        super().__init__({})
        self.found: list[float | None] = []

    def observe(self, done: Completion) -> None:
        self.found.append(done.turnaround)


def turnaround_world() -> tuple[World, Turnarounds]:
    learner = Turnarounds()
    return World(make_engine(learn=learner), make_node("n0")), learner


def test_the_turnaround_is_the_time_from_bind_to_end_without_the_run() -> None:
    world, learner = turnaround_world()
    world.add(TASK)
    world.step(TaskSeen(replace(TASK, node="n0")), after=2.0)  # bound
    world.step(TaskSeen(replace(TASK, node="n0", phase="Running", started=3.0)), after=1.5)
    ended = replace(TASK, node="n0", phase="Succeeded", started=3.0, finished=13.0)
    world.step(TaskSeen(ended), after=10.5)  # 14 s after the bind
    assert learner.found == [4.0]


def test_a_pod_that_another_process_has_bound_has_no_turnaround() -> None:
    world, learner = turnaround_world()
    world.step(TaskSeen(running(TASK)))
    world.step(TaskSeen(replace(running(TASK), phase="Succeeded", finished=5.0)), after=20.0)
    assert learner.found == [None]


def test_room_that_was_held_before_the_bind_is_not_part_of_it() -> None:
    """A pod is nominated and waits for its victims."""
    world, _ = turnaround_world()
    state = world.engine._state
    state.placed.set(TASK, "n0", 0.0)
    state.placed.assume(TASK, "n0", 30.0)
    assert state.placed.bound_at("uid-t") == 30.0
    assert state.placed.bound_at("other") is None
