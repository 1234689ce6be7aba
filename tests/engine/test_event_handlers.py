"""Event handlers: late, repeated and unknown events do no harm; pods of other schedulers count."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.model.events import (
    BindConfirmed,
    BindRefused,
    Event,
    NodeGone,
    NodeSeen,
    Paused,
    Resumed,
    TaskGone,
    TaskSeen,
)
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.power_of_two import Uniform
from worlds import World, numbered, small_world


@pytest.mark.parametrize(
    "event",
    [
        NodeGone("unknown"),
        TaskGone("unknown"),
        BindConfirmed("unknown", "n0"),
        BindRefused("unknown", "n0", "conflict"),
        TaskSeen(make_task("ended", phase="Failed")),
    ],
)
def test_an_event_about_an_unknown_object_changes_nothing(event: Event) -> None:
    world = small_world(make_engine())
    before = world.engine.queue_counts()
    assert world.step(event, event) == []
    assert world.engine.queue_counts() == before


def test_repeated_events_change_nothing() -> None:
    world = small_world(make_engine(), cpu=2)
    world.add(*numbered(4))
    before, bound = world.engine.queue_counts(), dict(world.placed())
    world.step(NodeSeen(make_node("n0", cpu=2)), *(TaskSeen(task) for task in world.tasks.values()))
    assert world.engine.queue_counts() == before
    assert world.placed() == bound


def test_a_late_event_that_shows_a_bound_pod_pending_is_ignored() -> None:
    world = small_world(make_engine(), cpu=2)
    world.add(make_task("a"))
    world.step(TaskSeen(make_task("a")))
    assert (len(world.binds), world.engine.queue_counts().active) == (1, 0)
    world.add(make_task("b"), make_task("c"))
    assert set(world.placed()) == {"a", "b"}


def test_a_late_event_that_shows_a_foreign_bound_pod_pending_is_ignored() -> None:
    world = small_world(make_engine(), cpu=1)
    world.step(TaskSeen(make_task("f", profile="other", node="n0")))
    world.step(TaskSeen(make_task("f", profile="other")))
    world.add(make_task("a"))
    assert world.placed() == {}


def test_a_late_event_about_a_deleted_pod_is_ignored() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(make_task("a"))
    world.delete("a")
    world.step(TaskSeen(make_task("a", node="n0")), TaskSeen(make_task("a")))
    assert world.engine.queue_counts().active == 0
    world.add(make_task("b"))
    assert world.placed() == {"b": "n0"}


def test_a_pod_seen_before_its_node_holds_room_when_the_node_appears() -> None:
    world = World(make_engine())
    world.step(TaskSeen(make_task("f", profile="other", node="n0", cpu=3)))
    world.put_node(make_node("n0", cpu=4))
    world.add(*numbered(2))
    assert len(world.placed()) == 1


def test_a_node_that_is_created_again_still_holds_its_pods() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a", cpu=3))
    world.drop_node("n0")
    world.put_node(make_node("n0", cpu=4))
    world.add(make_task("b", cpu=2))
    assert set(world.placed()) == {"a"}
    world.delete("a")
    assert set(world.placed()) == {"b"}


def test_a_reused_row_holds_nothing_of_the_deleted_node() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a", cpu=4))
    world.drop_node("n0")
    world.put_node(make_node("m", cpu=4))
    world.delete("a")
    world.add(make_task("b", cpu=4), make_task("c", cpu=1))
    assert world.placed() == {"b": "m"}


def test_a_pod_whose_node_is_deleted_during_its_bind_is_placed_elsewhere() -> None:
    world = small_world(make_engine(), cpu=4)
    world.refuse = lambda bind: "node not found" if bind.node == "n0" else ""
    world.answers_binds = False
    world.add(make_task("a"))
    world.drop_node("n0")
    world.answers_binds = True
    world.put_node(make_node("m", cpu=4))
    world.sleep(1)
    assert world.placed() == {"a": "m"}


def test_tasks_queued_at_a_deleted_node_are_placed_on_other_nodes() -> None:
    world = World(make_engine(Uniform("lines")), make_node("n0", cpu=1))
    world.add(*numbered(3))
    world.put_node(make_node("m", cpu=2))
    assert world.engine.queue_counts().node_queues == 2
    world.drop_node("n0")
    assert world.engine.queue_counts().node_queues == 0
    assert [world.node_of(f"t{at}") for at in (1, 2)] == ["m", "m"]


def test_pods_of_other_schedulers_hold_room_and_are_not_placed() -> None:
    world = small_world(make_engine(), cpu=4)
    world.step(TaskSeen(make_task("f", profile="other", node="n0", cpu=3)))
    world.step(TaskSeen(make_task("waiting", profile="other", cpu=1)))
    world.add(*numbered(2))
    assert list(world.placed()) == ["t0"]


def test_a_nominated_foreign_pod_holds_room_until_its_nomination_ends() -> None:
    world = small_world(make_engine(), cpu=4)
    world.step(TaskSeen(make_task("f", profile="other", nominated="n0", cpu=4)))
    world.add(make_task("a"))
    assert world.placed() == {}
    world.step(TaskSeen(make_task("f", profile="other", cpu=4)))
    world.settle()
    assert world.placed() == {"a": "n0"}


def test_a_foreign_pod_bound_elsewhere_releases_its_nominated_node() -> None:
    world = small_world(make_engine(), nodes=2, cpu=4)
    world.step(TaskSeen(make_task("f", profile="other", nominated="n0", cpu=4)))
    world.step(TaskSeen(make_task("f", profile="other", nominated="n0", node="n1", cpu=4)))
    world.add(make_task("a"))
    assert world.placed() == {"a": "n0"}


def test_a_gated_pod_waits_until_its_last_gate_is_removed() -> None:
    world = small_world(make_engine())
    world.add(make_task(gates=("x", "y")))
    world.put(make_task(gates=("y",)))
    assert (world.placed(), world.engine.queue_counts().gated) == ({}, 1)
    world.put(make_task())
    assert (world.placed(), world.engine.queue_counts().gated) == ({"a": "n0"}, 0)


def test_a_deleting_pod_is_not_placed() -> None:
    world = small_world(make_engine())
    world.add(make_task(deleting=True))
    assert (world.binds, world.engine.queue_counts().active) == ([], 0)


def test_a_waiting_pod_that_changes_is_decided_anew() -> None:
    world = World(make_engine(), make_node("n0", labels={"disk": "hdd"}))
    world.add(make_task(node_selector=(("disk", "ssd"),)))
    assert world.placed() == {}
    world.put(make_task(node_selector=(("disk", "hdd"),)))
    assert world.placed() == {"a": "n0"}


def test_a_cordoned_node_gets_no_pods() -> None:
    world = small_world(make_engine(), nodes=2)
    world.put_node(make_node("n0", unschedulable=True))
    world.add(*numbered(4))
    assert set(world.placed().values()) == {"n1"}


def test_a_node_that_shrinks_below_its_used_amounts_gets_no_pods() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a", cpu=3))
    world.put_node(make_node("n0", cpu=2))
    world.add(make_task("b", cpu=1))
    assert set(world.placed()) == {"a"}


def test_nothing_is_decided_while_paused_and_nothing_is_forgotten() -> None:
    world = small_world(make_engine(), cpu=2)
    world.step(Paused())
    world.add(*numbered(3))
    assert world.binds == []
    world.step(Resumed())
    world.settle()
    assert list(world.placed()) == ["t0", "t1"]


def test_a_completed_pod_is_one_sample() -> None:
    learn = ExactSpeeds({})
    world = small_world(make_engine(learn=learn))
    world.add(make_task("a", workload="w"))
    ended = make_task("a", workload="w", node="n0", phase="Succeeded", started=5.0, finished=12.0)
    world.step(TaskSeen(ended), after=20)
    world.step(TaskSeen(ended), TaskGone("uid-a"), TaskSeen(ended))
    assert [(done.row, done.workload, done.seconds) for done in learn.seen] == [(0, "w", 7.0)]


@pytest.mark.parametrize(
    "end",
    [
        {"phase": "Failed", "started": 5.0, "finished": 12.0},
        {"phase": "Succeeded", "started": None, "finished": 12.0},
        {"phase": "Succeeded", "started": 12.0, "finished": 5.0},
    ],
)
def test_a_pod_that_failed_or_has_no_valid_times_is_no_sample(end: dict[str, object]) -> None:
    learn = ExactSpeeds({})
    world = small_world(make_engine(learn=learn))
    world.add(make_task("a"))
    world.step(TaskSeen(make_task("a", node="n0", **end)))
    assert learn.seen == []


def test_the_arrays_grow_with_the_cluster() -> None:
    world = small_world(make_engine(LeastAllocated()), nodes=1, cpu=1)
    world.step(*(NodeSeen(make_node(f"m{at}", cpu=1)) for at in range(200)))
    world.add(*numbered(250))
    assert len(set(world.placed().values())) == 201


def test_an_unknown_resource_gets_a_column() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a"), make_task("g", gpus=1))
    world.put_node(make_node("g0", cpu=4, gpus=1))
    assert world.node_of("g") == "g0"
