"""From a decision to a bound pod: assumed at once, forgotten when refused."""

from __future__ import annotations

import pytest

from builders import amounts, make_engine, make_node, make_task
from eclectus.model.commands import Bind
from eclectus.model.events import BindConfirmed, BindRefused, TaskGone, TaskSeen
from eclectus.policies.place.allocation import LeastAllocated
from worlds import World, numbered, small_world


def test_nothing_is_decided_before_the_picture_is_complete() -> None:
    engine = make_engine()
    assert engine.step([TaskSeen(make_task())], now=0.0) == []
    assert engine.next_step_at() is None


def test_a_pod_that_fits_is_bound_in_the_step_that_shows_it() -> None:
    world = small_world(make_engine())
    assert world.step(TaskSeen(make_task())) == [Bind("uid-a", "default", "a", "n0", "eclectus")]


def test_a_bind_counts_before_it_is_answered() -> None:
    world = small_world(make_engine(), cpu=4)
    world.answers_binds = False
    world.step(*(TaskSeen(task) for task in numbered(5)))
    assert len(world.binds) == 4
    assert world.engine.queue_counts().binding == 4
    assert world.engine.queue_counts().unschedulable == 1


def test_the_step_that_shows_a_hundred_pods_overfills_no_node() -> None:
    world = small_world(make_engine(LeastAllocated()), nodes=3, cpu=4)
    world.add(*numbered(100))
    assert sorted(world.placed().values()) == ["n0"] * 4 + ["n1"] * 4 + ["n2"] * 4


def test_a_refused_bind_gives_the_room_back() -> None:
    world = small_world(make_engine(), cpu=1)
    world.refuse = lambda bind: "conflict" if bind.name == "a" else ""
    world.add(make_task("a"))
    world.add(make_task("b"))
    assert world.placed() == {"b": "n0"}


def test_a_refused_pod_is_tried_again_after_one_second_doubling_to_ten() -> None:
    world = small_world(make_engine(LeastAllocated()), cpu=1)
    world.refuse = lambda bind: "conflict"
    world.add(make_task())
    waits = []
    for _ in range(6):
        tried, began = len(world.binds), world.now
        while len(world.binds) == tried:
            world.advance_to_next_step()
        waits.append(world.now - began)
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_a_refused_bind_is_told_with_the_node_and_the_reason() -> None:
    world = small_world(make_engine(), cpu=1)
    world.refuse = lambda bind: "pod a is being deleted"
    world.add(make_task())
    assert world.messages("a") == [
        ("SchedulerError", "binding to node n0 was refused: pod a is being deleted")
    ]


def test_what_changed_while_backing_off_counts_when_it_is_tried_again() -> None:
    world = small_world(make_engine(), cpu=4)
    world.refuse = lambda bind: "conflict" if len(world.binds) == 1 else ""
    world.add(make_task(cpu=1))
    world.add(make_task(cpu=9))
    assert world.engine.queue_counts().backoff == 1
    world.sleep(1)
    assert (len(world.binds), world.engine.queue_counts().unschedulable) == (1, 1)


def test_a_bound_pod_starts_from_one_second_if_it_ever_comes_back() -> None:
    world = small_world(make_engine(), cpu=1)
    world.refuse = lambda bind: "conflict" if len(world.binds) < 3 else ""
    world.add(make_task())
    world.sleep(5)
    assert world.placed() == {"a": "n0"}
    assert world.engine.queue_counts().backoff == 0


def test_what_changed_in_flight_counts_when_the_bind_is_refused() -> None:
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
def test_a_pod_gated_or_deleted_in_flight_is_not_tried_again(change: dict[str, object]) -> None:
    world = small_world(make_engine(), cpu=4)
    world.answers_binds = False
    world.step(TaskSeen(make_task()))
    world.step(TaskSeen(make_task(**change)), BindRefused("uid-a", "n0", "conflict"))
    world.sleep(60)
    assert len(world.binds) == 1
    assert world.engine.queue_counts().gated == ("gates" in change)


def test_a_pod_removed_in_flight_gives_its_room_back_once() -> None:
    world = small_world(make_engine(), cpu=1)
    world.answers_binds = False
    world.step(TaskSeen(make_task("a")))
    world.step(TaskGone("uid-a"), BindRefused("uid-a", "n0", "not found"))
    world.step(TaskSeen(make_task("b")), TaskSeen(make_task("c")))
    assert [bind.name for bind in world.binds] == ["a", "b"]


def test_the_watch_may_say_sooner_than_the_answer_that_a_pod_is_bound() -> None:
    world = small_world(make_engine(), cpu=4)
    world.answers_binds = False
    world.step(TaskSeen(make_task()))
    world.step(TaskSeen(make_task(node="n0")), BindConfirmed("uid-a", "n0"))
    census = world.engine.queue_counts()
    assert (census.binding, census.active, census.counters.attempts["scheduled", "eclectus"]) == (0, 0, 1)


def test_a_pod_bound_elsewhere_by_another_hand_holds_room_there_alone() -> None:
    world = small_world(make_engine(), nodes=2, cpu=1)
    world.answers_binds = False
    world.step(TaskSeen(make_task("a")))
    taken, other = ("n0", "n1") if world.binds[0].node == "n0" else ("n1", "n0")
    world.step(TaskSeen(make_task("a", node=other)), BindRefused("uid-a", taken, "already bound"))
    world.step(TaskSeen(make_task("b")))
    assert world.binds[-1].node == taken


def test_room_is_counted_in_every_resource_and_in_pod_places() -> None:
    engine = make_engine(LeastAllocated())
    world = World(engine, make_node("n", cpu=100, memory=4, pods=3, gpus=1))
    world.add(make_task("a", gpus=1), make_task("b", gpus=1), make_task("c", memory=3), make_task("d"))
    world.add(make_task("e"))
    assert set(world.placed()) == {"a", "c", "d"}


def test_a_resized_resident_holds_what_the_kubelet_says() -> None:
    world = small_world(make_engine(), cpu=4)
    world.add(make_task("a", cpu=1))
    world.put(make_task("a", cpu=1, node="n0", held=amounts(cpu=3)))
    world.add(make_task("b", cpu=2))
    assert set(world.placed()) == {"a"}
    world.put(make_task("a", cpu=1, node="n0"))
    assert set(world.placed()) == {"a", "b"}
