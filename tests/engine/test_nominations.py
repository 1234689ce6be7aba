"""Nominations: room that is held for a pod while its victims terminate, and who may use it instead."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.framework import Order
from eclectus.model.commands import Renominate
from eclectus.model.events import (
    EvictRefused,
    NominateRefused,
    TaskGone,
    TaskSeen,
)
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.relieve.preemption import Preemption
from preemption_worlds import bound, budget, world_of
from worlds import World

WEB = (("app", "web"),)


def preempting(priority: int = 5) -> World:
    """low0 is being evicted for high, which is nominated to the only node, of one core."""
    world = world_of(make_node("n0", 1))
    world.terminates_at_once = False
    world.add(bound("low0", "n0"))
    world.add(make_task("high", priority=priority))
    assert world.tasks["high"].nominated == "n0"
    return world


def test_held_room_is_not_given_to_others() -> None:
    world = preempting()
    world.add(make_task("later", created=-1.0))
    world.delete("low0")
    assert world.placed() == {"high": "n0"}


def test_a_pod_of_higher_priority_takes_the_room_and_the_other_asks_again() -> None:
    world = preempting()
    world.add(make_task("highest", priority=10))
    assert world.tasks["high"].nominated == ""
    assert world.tasks["highest"].nominated == "n0"
    world.delete("low0")
    world.sleep(60)
    assert world.placed() == {"highest": "n0"}
    assert world.victims() == ["low0"]


def test_a_nomination_by_others_is_tried_first() -> None:
    world = world_of(make_node("n0"), make_node("n1"))
    world.add(make_task("mine", nominated="n1"))
    assert world.node_of("mine") == "n1"


def test_room_held_for_a_pod_of_lower_priority_is_free_to_one_of_higher() -> None:
    world = world_of(make_node("n0", 1))
    world.add(make_task("foreign", profile="other", nominated="n0", priority=3))
    world.add(make_task("equal", priority=3), make_task("higher", priority=4))
    assert world.placed() == {"higher": "n0"}


def test_a_nomination_to_a_node_that_cannot_help_is_withdrawn() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1, unschedulable=True))
    world.add(bound("other", "n0", priority=9))
    world.add(make_task("mine", nominated="n1"), make_task("also", nominated="n0"))
    assert {world.tasks["mine"].nominated, world.tasks["also"].nominated} == {""}


def test_a_pod_that_is_deleted_or_gated_gives_its_room_back() -> None:
    for change in ({"deleting": True}, {"gates": ("gate",)}):
        world = preempting()
        world.put(replace(world.tasks["high"], **change))
        world.delete("low0")
        world.add(make_task("later"))
        assert world.node_of("later") == "n0"


def test_a_refused_nomination_or_eviction_is_tried_again_later() -> None:
    world = preempting()
    world.evictions.clear()
    world.tasks["low0"] = replace(world.tasks["low0"], deleting=False)
    world.step(TaskSeen(world.tasks["low0"]), EvictRefused("uid-low0", "the webhook said no"))
    assert world.tasks["high"].nominated == ""
    world.sleep(5)
    assert world.victims() == ["low0"]
    assert world.tasks["high"].nominated == "n0"
    world.step(NominateRefused("uid-high", "n0", "forbidden"))
    assert world.tasks["high"].nominated == ""


def test_after_a_crash_between_nomination_and_eviction_nobody_is_evicted_in_vain() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.terminates_at_once = False
    world.add(bound("low0", "n0"), bound("low1", "n1", deleting=True))
    world.add(make_task("high", priority=5, nominated="n0"))  # the eviction of low0 was never sent
    world.sleep(5)
    assert world.victims() == []
    world.delete("low1")
    assert world.node_of("high") == "n1"


def test_a_budget_that_opens_is_the_only_event_that_is_needed() -> None:
    """Violating budgets is a last resort, so only the choice of victims changes with the budget."""
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.step(budget(0))
    world.add(bound("web", "n0", labels=WEB), bound("other", "n1", priority=5))
    world.add(make_task("a", priority=6))
    assert world.victims() == ["other"]
    world.step(budget(1))
    world.add(make_task("b", priority=6))
    assert world.victims() == ["other", "web"]


def test_a_pod_that_joins_a_refused_class_still_gets_room_held_for_lower_priorities() -> None:
    world = world_of(make_node("n0", 2))
    world.add(bound("other", "n0", priority=9), make_task("foreign", profile="other", nominated="n0"))
    world.add(make_task("equal"))
    world.add(make_task("higher", priority=1))
    assert world.placed() == {"other": "n0", "higher": "n0"}


def test_a_nomination_that_replaces_a_pod_is_free_to_pods_refused_before() -> None:
    world = world_of(make_node("n0", 1))
    world.add(bound("other", "n0", priority=9))
    world.add(make_task("waiting", priority=5))
    foreign = make_task("foreign", profile="other", nominated="n0", priority=1)
    world.tasks["foreign"] = foreign
    world.step(TaskGone(world.tasks.pop("other").uid), TaskSeen(foreign))
    world.settle()
    assert world.node_of("waiting") == "n0"


@pytest.mark.parametrize("order", [FifoOrder, DominantShare])
def test_room_held_for_lower_priorities_that_comes_later_goes_to_a_pod_refused_before(
    order: type[Order],
) -> None:
    """Pods of its class that cannot use the room come first in the Order, and nothing else changes."""
    engine = make_engine(LeastAllocated(), relieve=Preemption(), order=order())
    world = World(engine, make_node("n0", 1))
    world.add(bound("other", "n0", priority=9), make_task("foreign", profile="other", nominated="n0"))
    world.add(make_task("equal", created=-1.0, job="a"), make_task("higher", priority=1, job="b"))
    world.delete("other")
    assert world.placed() == {"higher": "n0"}


def test_a_nomination_to_a_node_that_does_not_exist_is_withdrawn() -> None:
    world = world_of(make_node("n0", 1))
    world.add(bound("low", "n0"), make_task("high", priority=5, nominated="gone"))
    world.sleep(60)
    assert world.victims() == ["low"]
    assert world.node_of("high") == "n0"


def test_a_pod_whose_bind_elsewhere_is_refused_is_nominated_again_at_once() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.terminates_at_once = False
    world.add(bound("low0", "n0"), bound("low1", "n1", priority=1))
    world.add(make_task("high", priority=9))
    world.refuse = lambda bind: "no" if bind.node == "n1" else ""
    world.delete("low1")
    (bind,) = world.binds
    assert bind.before == (Renominate("n1", from_node="n0"),)
    world.refuse = lambda bind: ""
    world.delete("low0")
    world.add(make_task("next", created=-1.0, priority=1))
    assert world.placed() == {"high": "n0", "next": "n1"}


def test_a_bind_to_the_nominated_node_has_no_step_before_it() -> None:
    world = preempting()
    world.delete("low0")
    assert [bind.before for bind in world.binds] == [()]


def test_where_no_pod_has_a_lower_priority_the_policy_is_not_asked() -> None:
    world = world_of(make_node("n0", 1))
    world.add(bound("other", "n0", priority=5), make_task("mine", priority=5))
    world.sleep(100)
    assert world.engine.queue_counts().counters.preemption_attempts == 0
    world.put(replace(world.tasks["other"], priority=4))
    world.sleep(60)
    assert world.victims() == ["other"]


def test_a_pod_gets_the_devices_that_are_held_for_a_lower_priority() -> None:
    world = world_of(make_node("n0", devices=2))
    world.add(bound("other", "n0", priority=9, device_milli=1000))
    world.add(make_task("foreign", profile="other", nominated="n0", device_milli=1000))
    world.add(make_task("higher", priority=1, device_milli=1000))
    assert [bind.grant.devices for bind in world.binds] == [(1,)]
