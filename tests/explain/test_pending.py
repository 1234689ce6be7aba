"""The list of pods that wait: which, in which order, and what is said of each without looking at nodes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.explain import pod as explanations
from eclectus.explain.pending import NO_REPORT, pending_pods
from eclectus.framework import Defer, Enqueue, OrderTraits, Reason, ReserveMany, View, Wait
from eclectus.model.events import PoolSeen
from eclectus.model.explanation import Listed, Oldest, PendingPod
from eclectus.model.objects import Task
from eclectus.model.pool import Pool, PoolAmounts
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from explain_questions import Answering
from gangs import group, members
from worlds import World, numbered, small_world


def listed(
    world: World, namespace: str = "", after: Oldest | None = None, most: int = 500
) -> Listed[PendingPod, Oldest]:
    return world.engine.read(pending_pods, namespace, after, most, world.now)


def lines(world: World, *fields: str) -> list[Any]:
    return [tuple(getattr(each, name) for name in fields) for each in listed(world).items]


def full_world() -> World:
    """One node without room, and pods that wait, created one second after the other."""
    world = small_world(make_engine(BestFit(), wait_limit=None), cpu=1)
    world.add(make_task("runs"))
    return world


def test_the_oldest_come_first_with_what_was_reported_of_them() -> None:
    world = full_world()
    world.add(*reversed(numbered(3)))
    assert [each for (each,) in lines(world, "reason")] == ["no node has room for it"] * 3
    world.sleep(40.0)
    assert lines(world, "name", "state", "ahead") == [
        ("t0", "unschedulable", 0),
        ("t1", "unschedulable", 1),
        ("t2", "unschedulable", 2),
    ]
    first = listed(world).items[1]
    assert first.reason.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert (first.scheduler_name, first.uid, first.created) == ("eclectus", "uid-t1", 1.0)
    assert first.age == world.now - 1.0
    assert first.since is not None
    assert 0 < first.since <= 40.0


def test_what_an_earlier_process_has_reported_counts_until_there_is_a_report() -> None:
    world = full_world()
    world.add(make_task("a", reported="seen before"))
    assert lines(world, "reason") == [("seen before",)]


def test_pods_of_a_namespace_and_those_that_wait_alone() -> None:
    world = full_world()
    world.add(make_task("a"), replace(make_task("b"), namespace="other"), make_task("c", deleting=True))
    world.answers_binds = False
    world.add(make_task("d", cpu=0.0))
    assert world.in_flight, "its bind is under way"
    assert [each.name for each in listed(world, "other").items] == ["b"]
    assert [each.name for each in listed(world).items] == ["a", "b"]
    assert listed(world, "none") == Listed(())


def test_pages_have_every_pod_once_although_some_come_and_go_between_them() -> None:
    world = full_world()
    world.add(*numbered(10))
    first = listed(world, most=4)
    assert (len(first.items), first.left, first.last) == (4, 6, (3.0, "default", "t3"))
    world.delete("t3")
    world.delete("t5")
    world.add(make_task("new", created=20.0))
    second = listed(world, after=first.last, most=4)
    third = listed(world, after=second.last, most=4)
    names = [each.name for page in (second, third) for each in page.items]
    assert names == ["t4", "t6", "t7", "t8", "t9", "new"]
    assert (second.left, third.left) == (2, 0)
    assert listed(world, after=third.last).last is None


def test_gated_pods_and_those_whose_last_attempt_failed_are_explained_as_of_now() -> None:
    world = small_world(make_engine())
    world.refuse = lambda bind: "the API server is full"
    world.add(make_task("a", gates=("one",), reported="of before"), make_task("b"))
    world.step()
    assert lines(world, "name", "state", "reason", "ahead") == [
        ("a", "gated", "it has scheduling gates: one", None),
        ("b", "backOff", "its last attempt failed, and it is tried again after a back-off", None),
    ]


def test_a_deferred_pod_says_since_when() -> None:
    world = small_world(make_engine(Answering(lambda task: Defer(task, Wait(until=20.0)))))
    world.add(make_task("a"))
    world.now += 5.0
    assert lines(world, "state", "since", "ahead", "reason") == [
        ("deferred", 5.0, 0, NO_REPORT["deferred"]),
    ]


class Withholding(FifoOrder):
    """Offers nothing."""

    @property
    def traits(self) -> OrderTraits:
        return OrderTraits(withholds=True)

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...] | Wait:
        return Wait(Reason("others come first"), until=30.0)


def test_a_withheld_pod_is_explained_in_the_words_of_its_order() -> None:
    world = small_world(make_engine(order=Withholding()))
    world.add(make_task("a", reported="of before"))
    assert lines(world, "state", "reason", "ahead") == [("withheld", "others come first", 0)]


def test_places_in_a_node_queue_are_counted_once_for_a_page() -> None:
    world = small_world(make_engine(Answering(lambda task: Enqueue(task, 0))), cpu=1)
    world.add(*numbered(4))
    world.now += 4.0
    assert lines(world, "name", "state", "ahead", "nodes", "since") == [
        ("t1", "nodeQueue", 0, ("n0",), 4.0),
        ("t2", "nodeQueue", 1, ("n0",), 4.0),
        ("t3", "nodeQueue", 2, ("n0",), 4.0),
    ]


def test_in_the_queues_of_several_nodes_no_place_is_said() -> None:
    world = small_world(make_engine(Answering(lambda task: ReserveMany((task,), (0, 1)))), nodes=2, cpu=1)
    world.add(
        make_task("a", cpu=0.5), make_task("b", cpu=0.5), make_task("c"), make_task("d"), make_task("e")
    )
    several = [each for each in listed(world).items if len(each.nodes) > 1]
    assert several
    assert {each.ahead for each in several} == {None}


def test_pods_of_a_gang_wait_without_a_place() -> None:
    world = small_world(make_engine(BestFit()), cpu=1)
    world.step(group(minimum=3))
    world.add(*members(count=3))
    assert set(lines(world, "state", "ahead")) == {("gang", None)}


def test_a_limit_of_the_pool_is_named() -> None:
    world = World(make_engine(BestFit(), order=FairPools(), wait_limit=None), make_node(cpu=2))
    none = Pool("c", max_share=PoolAmounts((("cpu", 0),)), namespaces=("default",))
    world.step(PoolSeen(none))
    world.add(make_task("c", asked_pool="c"))
    ((state, reason),) = lines(world, "state", "reason")
    assert (state, "pool c holds 0m of at most 0m cpu" in reason) == ("heldBack", True)


def test_no_class_is_compared_with_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """That costs O(nodes) for each kind of pod, and a list may have hundreds of kinds."""
    world = full_world()
    world.add(*numbered(5))

    def compared(*_: object) -> None:
        raise AssertionError("a class was compared with all nodes")

    monkeypatch.setattr(explanations, "TaskClass", compared)
    assert len(listed(world).items) == 5
