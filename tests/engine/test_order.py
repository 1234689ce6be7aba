"""Which task is next: by priority, then by age; several profiles in one process."""

from __future__ import annotations

from builders import ExactSpeeds, make_engine, make_node, make_profile, make_task
from eclectus.engine.engine import Engine
from eclectus.framework import OrderTraits
from eclectus.model.events import Paused, Resumed
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.allocation import LeastAllocated, MostAllocated
from worlds import World, small_world


def bind_order(world: World) -> list[str]:
    return [bind.name for bind in world.binds]


def test_higher_priority_is_placed_first_whatever_its_age_or_class() -> None:
    world = small_world(make_engine(), cpu=9)
    world.add(
        make_task("old", created=1, cpu=1),
        make_task("high", created=3, priority=5, cpu=2),
        make_task("other", created=2, priority=5, cpu=3),
    )
    assert bind_order(world) == ["other", "high", "old"]


def test_the_older_pod_is_placed_first_even_if_it_is_seen_later() -> None:
    world = small_world(make_engine(), cpu=9)
    world.step(Paused())
    world.add(make_task("young", created=2))
    world.add(make_task("old", created=1))
    world.step(Resumed())
    assert bind_order(world) == ["old", "young"]


def test_a_pod_whose_priority_rises_while_it_waits_is_placed_first() -> None:
    world = small_world(make_engine(), cpu=1)
    world.add(make_task("placed"), make_task("old", created=1), make_task("young", created=2))
    world.put(make_task("young", created=2, priority=1))
    world.end("placed")
    assert world.placed() == {"young": "n0"}


def test_a_pod_whose_bind_was_refused_keeps_its_rank() -> None:
    world = small_world(make_engine(), cpu=1)
    world.refuse = lambda bind: "conflict" if len(world.binds) == 1 else ""
    world.add(make_task("placed", created=0))
    world.add(make_task("old", created=1))
    assert world.placed() == {"old": "n0"}
    world.add(make_task("young", created=2))
    world.sleep(2)
    world.end("old")
    assert world.placed() == {"placed": "n0"}


def test_an_unschedulable_pod_does_not_block_pods_of_another_class() -> None:
    world = small_world(make_engine(), cpu=2)
    world.add(make_task("large", cpu=3, created=0), make_task("small", cpu=1, created=1))
    assert world.placed() == {"small": "n0"}


def test_workloads_with_equal_requests_are_placed_by_age() -> None:
    world = small_world(make_engine(), cpu=3)
    world.add(*(make_task(f"t{at}", created=at, workload="ab"[at % 2]) for at in range(6)))
    assert bind_order(world) == ["t0", "t1", "t2"]


def test_each_profile_places_its_own_pods_on_the_same_nodes() -> None:
    profiles = [make_profile(LeastAllocated(), "spread"), make_profile(MostAllocated(), "pack")]
    world = World(Engine(profiles, Unlearned()), make_node("n0"), make_node("n1"))
    world.add(make_task("a", profile="spread"))
    world.add(make_task("b", profile="spread"), make_task("c", profile="pack", created=1))
    world.add(make_task("d", profile="nobody"))
    assert world.node_of("a") != world.node_of("b")
    assert {bind.name: bind.profile for bind in world.binds} == {"a": "spread", "b": "spread", "c": "pack"}


def test_the_profile_with_the_oldest_pod_is_asked_first() -> None:
    profiles = [make_profile(name="one"), make_profile(name="two")]
    world = World(Engine(profiles, Unlearned()), make_node("n0", cpu=1))
    world.add(make_task("late", profile="one", created=2), make_task("early", profile="two", created=1))
    assert bind_order(world) == ["early"]


def test_one_learner_serves_all_profiles() -> None:
    learn = ExactSpeeds({"n1": 8.0})
    world = World(
        Engine([make_profile(name="one"), make_profile(name="two")], learn), make_node("n0"), make_node("n1")
    )
    world.add(make_task("a", profile="one"), make_task("b", profile="two"))
    assert set(world.placed().values()) == {"n1"}


def test_groups_of_an_order_never_share_a_class_queue() -> None:
    class ByJob(FifoOrder):
        traits = OrderTraits()

        def group(self, task):  # type: ignore[no-untyped-def]
            return task.job

        def rank(self, view, group, head):  # type: ignore[no-untyped-def]
            return (ord(group),)

    world = small_world(make_engine(order=ByJob()), cpu=9)
    world.add(*(make_task(f"t{at}", created=at, job="ab"[at % 2]) for at in range(4)))
    assert bind_order(world) == ["t0", "t2", "t1", "t3"]
