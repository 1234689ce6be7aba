"""From a decision to a bound pod: assumed at once, released when the bind is refused."""

from __future__ import annotations

import pytest

from builders import amounts, make_engine, make_node, make_task
from eclectus.model.commands import Bind
from eclectus.model.events import BindConfirmed, BindRefused, TaskGone, TaskSeen
from eclectus.policies.place.allocation import LeastAllocated
from worlds import World, numbered, small_world


def test_nothing_is_decided_before_resumed() -> None:
    engine = make_engine()
    assert engine.step([TaskSeen(make_task())], now=0.0) == []
    assert engine.next_step_at() is None


def test_a_pod_that_fits_is_bound_in_the_step_of_its_event() -> None:
    world = small_world(make_engine())
    assert world.step(TaskSeen(make_task())) == [Bind("uid-a", "default", "a", "n0", "eclectus")]


def test_an_assumed_pod_holds_room_before_its_bind_is_answered() -> None:
    world = small_world(make_engine(), cpu=4)
    world.answers_binds = False
    world.step(*(TaskSeen(task) for task in numbered(5)))
    assert len(world.binds) == 4
    assert world.engine.queue_counts().binding == 4
    assert world.engine.queue_counts().unschedulable == 1


def test_a_step_with_a_hundred_pods_overcommits_no_node() -> None:
    world = small_world(make_engine(LeastAllocated()), nodes=3, cpu=4)
    world.add(*numbered(100))
    assert sorted(world.placed().values()) == ["n0"] * 4 + ["n1"] * 4 + ["n2"] * 4


def test_a_refused_bind_releases_the_room() -> None:
    world = small_world(make_engine(), cpu=1)
    world.refuse = lambda bind: "conflict" if bind.name == "a" else ""
    world.add(make_task("a"))
    world.add(make_task("b"))
    assert world.placed() == {"b": "n0"}


def test_a_refused_pod_is_retried_after_one_second_doubling_to_ten() -> None:
    world = small_world(make_engine(LeastAllocated()), cpu=1)
    world.refuse = lambda bind: "conflict"
    world.add(make_task())
    waits = []
    for _ in range(6):
        attempts, began = len(world.binds), world.now
        while len(world.binds) == attempts:
            world.advance_to_next_step()
        waits.append(world.now - began)
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_refused_bind_is_reported_with_node_and_reason() -> None:
    world = small_world(make_engine(), cpu=1)
    world.refuse = lambda bind: "pod a is being deleted"
    world.add(make_task())
    assert world.messages("a") == [
        ("SchedulerError", "binding to node n0 was refused: pod a is being deleted")
    ]


def test_a_change_during_back_off_counts_at_the_next_attempt() -> None:
    world = small_world(make_engine(), cpu=4)
    world.refuse = lambda bind: "conflict" if len(world.binds) == 1 else ""
    world.add(make_task(cpu=1))
    world.add(make_task(cpu=9))
    assert world.engine.queue_counts().backoff == 1
    world.sleep(1)
    assert (len(world.binds), world.engine.queue_counts().unschedulable) == (1, 1)


def test_a_bound_pod_is_no_longer_in_back_off() -> None:
    world = small_world(make_engine(), cpu=1)
    world.refuse = lambda bind: "conflict" if len(world.binds) < 3 else ""
    world.add(make_task())
    world.sleep(5)
    assert world.placed() == {"a": "n0"}
    assert world.engine.queue_counts().backoff == 0


def test_a_change_during_the_bind_counts_when_the_bind_is_refused() -> None:
    world = small_world(make_engine(), cpu=4)
    world.refuse = lambda bind: "conflict" if len(world.binds) == 1 else ""
    world.answers_binds = False
    world.add(make_task(cpu=1))
    world.add(make_task(cpu=3))
    world.answers_binds = True
    world.sleep(1)
    world.add(make_task("b", cpu=2))
    assert world.placed() == {"a": "n0"}


@pytest.mark.parametrize("change", [{"gates": ("hold",)}, {"deleting": True}])
def test_a_pod_gated_or_deleted_during_its_bind_is_not_retried(change: dict[str, object]) -> None:
    world = small_world(make_engine(), cpu=4)
    world.answers_binds = False
    world.step(TaskSeen(make_task()))
    world.step(TaskSeen(make_task(**change)), BindRefused("uid-a", "n0", "conflict"))
    world.sleep(60)
    assert len(world.binds) == 1
    assert world.engine.queue_counts().gated == ("gates" in change)


def test_a_pod_removed_during_its_bind_releases_its_room_once() -> None:
    world = small_world(make_engine(), cpu=1)
    world.answers_binds = False
    world.step(TaskSeen(make_task("a")))
    world.step(TaskGone("uid-a"), BindRefused("uid-a", "n0", "not found"))
    world.step(TaskSeen(make_task("b")), TaskSeen(make_task("c")))
    assert [bind.name for bind in world.binds] == ["a", "b"]


def test_the_watch_may_show_a_pod_bound_before_its_bind_is_answered() -> None:
    world = small_world(make_engine(), cpu=4)
    world.answers_binds = False
    world.step(TaskSeen(make_task()))
    world.step(TaskSeen(make_task(node="n0")), BindConfirmed("uid-a", "n0"))
    counts = world.engine.queue_counts()
    assert (counts.binding, counts.active, counts.counters.attempts["scheduled", "eclectus"]) == (0, 0, 1)


def test_a_pod_bound_elsewhere_by_another_scheduler_holds_room_only_there() -> None:
    world = small_world(make_engine(), nodes=2, cpu=1)
    world.answers_binds = False
    world.step(TaskSeen(make_task("a")))
    taken, other = ("n0", "n1") if world.binds[0].node == "n0" else ("n1", "n0")
    world.step(TaskSeen(make_task("a", node=other)), BindRefused("uid-a", taken, "already bound"))
    world.step(TaskSeen(make_task("b")))
    assert world.binds[-1].node == taken


def test_room_is_limited_by_every_resource_and_by_the_number_of_pods() -> None:
    engine = make_engine(LeastAllocated())
    world = World(engine, make_node("n", cpu=100, memory=4, pods=3, gpus=1))
    world.add(make_task("a", gpus=1), make_task("b", gpus=1), make_task("c", memory=3), make_task("d"))
    world.add(make_task("e"))
    assert set(world.placed()) == {"a", "c", "d"}


def test_a_resized_pod_holds_what_its_status_reports() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a", cpu=1))
    world.put(make_task("a", cpu=1, node="n0", held=amounts(cpu=3)))
    world.add(make_task("b", cpu=2))
    assert set(world.placed()) == {"a"}
    world.put(make_task("a", cpu=1, node="n0"))
    assert set(world.placed()) == {"a", "b"}
