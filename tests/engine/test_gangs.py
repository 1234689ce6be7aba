"""Gangs: all pods that must start together get nodes in one step, or none does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_profile, make_task
from eclectus.engine.engine import Engine
from eclectus.engine.gangs import MEMBERS_MOST
from eclectus.framework import (
    Action,
    Bind,
    Defer,
    Enqueue,
    PendingTasks,
    Place,
    Reason,
    Unschedulable,
    View,
    Wait,
)
from eclectus.model.events import TaskSeen
from eclectus.policies.learn.none import Unlearned
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.sparrow import Sparrow
from eclectus.policies.place.tetris import Tetris
from eclectus.policies.relieve.preemption import Preemption
from gangs import group, key, members, no_group
from worlds import World, numbered, small_world


def world_of(nodes: int = 2, cpu: float = 2, place: Place | None = None, **roles: object) -> World:
    return small_world(make_engine(place or LeastAllocated(), **roles), nodes, cpu)


def used(world: World) -> float:
    """Cores that are held on all nodes."""
    cluster = world.engine._state.cluster
    return float(cluster.used[:, cluster.columns["cpu"]].sum()) / 1000


# -- quorum ----------------------------------------------------------------------------------------


def test_pods_wait_until_enough_of_their_group_exist_and_start_in_one_step() -> None:
    world = world_of()
    world.step(group(minimum=3))
    world.add(*members(count=2))
    world.sleep(60)
    assert world.binds == []
    assert world.messages("g0") == [
        ("WaitingForGang", "PodGroup default/g has 2 of the 3 pods that start together")
    ]
    last = members(count=1, first=2)[0]
    world.tasks[last.name] = last
    assert len(world.step(TaskSeen(last))) == 3
    world.settle()
    assert set(world.placed()) == {"g0", "g1", "g2"}


def test_a_group_that_does_not_exist_is_waited_for_by_name() -> None:
    world = world_of()
    world.add(*members(count=2))
    world.sleep(60)
    assert world.messages("g1") == [
        ("WaitingForGang", "waiting for PodGroup default/g, which does not exist")
    ]
    world.step(group(minimum=2))
    world.settle()
    assert len(world.placed()) == 2


@pytest.mark.parametrize("minimum", [0, 1])
def test_pods_of_a_group_without_a_quorum_are_ordinary_pods(minimum: int) -> None:
    world = world_of()
    world.step(group(minimum=minimum))
    world.add(*members(count=5))
    assert len(world.placed()) == 4


def test_without_room_for_all_none_starts_and_nothing_is_held() -> None:
    world = world_of()
    world.step(group(minimum=5))
    world.add(*members(count=5))
    world.sleep(60)
    assert world.binds == []
    assert used(world) == 0
    assert set(world.engine._state.placed._placed) == set()
    reason, message = world.messages("g4")[-1]
    assert reason == "Unschedulable"
    assert message.startswith(
        "PodGroup default/g: room for 4 of the 5 pods that start together; for another: 0/2 nodes are"
    )
    world.put_node(make_node("more", cpu=1))
    world.sleep(10)
    assert len(world.placed()) == 5


def test_of_two_gangs_that_fit_only_alone_exactly_one_starts_and_the_other_after_it() -> None:
    world = world_of()
    world.step(group("a", 3), group("b", 3))
    world.add(*(task for pair in zip(members("a", 3), members("b", 3), strict=True) for task in pair))
    assert set(world.placed()) == {"a0", "a1", "a2"}
    world.sleep(60)
    assert len(world.placed()) == 3
    for name in ("a0", "a1", "a2"):
        world.end(name)
    world.sleep(10)
    assert set(world.placed()) == {"b0", "b1", "b2"}


def test_pods_beyond_the_quorum_are_ordinary_pods_and_do_not_keep_it_waiting() -> None:
    world = world_of()
    world.step(group(minimum=3))
    world.add(*members(count=6))
    world.sleep(5)
    assert len(world.placed()) == 4, "three together, and one more as there is room"
    world.end(next(iter(world.placed())))
    world.sleep(15)
    assert len(world.placed()) == 4


def test_members_that_are_bound_count_so_that_one_that_failed_is_replaced() -> None:
    world = world_of()
    world.step(group(minimum=3))
    world.add(*members(count=3))
    world.delete("g1")
    world.add(*members(count=1, first=7))
    assert set(world.placed()) == {"g0", "g2", "g7"}


def test_a_gang_that_has_lost_its_quorum_starts_none_of_its_pods_alone() -> None:
    world = world_of(nodes=1, cpu=3)
    world.step(group(minimum=3))
    world.add(*members(count=5))
    assert len(world.placed()) == 3, "two wait as ordinary pods"
    for name in list(world.placed())[:2]:
        del world.tasks[name]
    gone = [task for task in members(count=5) if task.name not in world.tasks]
    world.step(*(TaskSeen(replace(task, phase="Failed")) for task in gone))
    world.settle()
    assert len(world.placed()) == 3, "they have started, with the one that is left"
    extra = members(count=1, first=9)
    world.add(*extra)
    world.drop_node("n0")
    for name in list(world.placed()):
        world.delete(name)
    world.put_node(make_node("n0", cpu=2))
    world.sleep(30)
    assert world.placed() == {}, "one pod of three is left"


def test_a_gang_of_different_pods_starts_with_those_that_have_room() -> None:
    world = world_of()
    world.step(group(minimum=2))
    small = members(count=2, first=1)
    world.add(make_task("g0", cpu=9, gang=key()), *small)
    world.sleep(5)
    assert set(world.placed()) == {"g1", "g2"}


def test_gated_pods_count_only_when_their_gates_are_gone() -> None:
    world = world_of()
    world.step(group(minimum=2))
    one, other = members(count=2)
    world.add(one, replace(other, gates=("quota",)))
    world.sleep(5)
    assert world.messages("g0")[-1][1] == (
        "PodGroup default/g has 2 pods, of which 2 start together, but 1 of them is gated, being deleted or "
        "backing off"
    )
    world.put(other)
    assert len(world.placed()) == 2


# -- pods and groups come and go -------------------------------------------------------------------


def test_a_member_that_is_deleted_leaves_the_others_waiting() -> None:
    world = world_of(nodes=1, cpu=2)
    world.step(group(minimum=3))
    world.add(*members(count=3))
    world.delete("g0")  # the lead
    world.put_node(make_node("wide", cpu=9))
    world.sleep(30)
    assert world.binds == []
    world.add(*members(count=1, first=3))
    assert len(world.placed()) == 3


def test_a_group_may_be_deleted_and_come_back_with_another_quorum() -> None:
    world = world_of(nodes=1, cpu=2)
    world.step(group(minimum=3))
    world.add(*members(count=3))
    world.step(no_group())
    world.sleep(20)
    assert world.binds == []
    world.step(group(minimum=2))
    world.settle()
    assert len(world.placed()) == 2


@pytest.mark.parametrize("restarts", [False, True])
def test_a_pod_that_replaces_one_starts_though_another_has_ended(restarts: bool) -> None:
    """kubernetes/kubernetes#142330."""
    world = world_of(nodes=1, cpu=8)
    world.step(group(minimum=3))
    world.add(*members(count=3))
    ended = replace(world.tasks["g0"], phase="Succeeded", started=0.0, finished=5.0)
    world.end("g0")
    world.delete("g1")
    if restarts:
        again = world_of(nodes=1, cpu=8)
        again.step(TaskSeen(ended), TaskSeen(world.tasks["g2"]), group(minimum=3))
        world = again
    world.add(*members(count=1, first=3))
    world.sleep(30)
    assert world.node_of("g3")


def test_once_no_pod_of_a_gang_runs_the_next_ones_start_together() -> None:
    world = world_of(nodes=1, cpu=8)
    world.step(group(minimum=2))
    world.add(*members(count=2))
    world.end("g0")
    world.end("g1")
    world.add(*members(count=1, first=2))
    world.sleep(30)
    assert not world.node_of("g2")
    world.add(*members(count=1, first=3))
    world.sleep(30)
    assert world.node_of("g2")
    assert world.node_of("g3")


@pytest.mark.parametrize("restarts", [False, True])
def test_those_that_a_cut_start_has_left_start_though_the_others_have_ended(restarts: bool) -> None:
    """One of three was bound and has ended before the scheduler, or the next one, could bind the rest."""
    world = world_of(nodes=1, cpu=8)
    world.step(group(minimum=3))
    one, *others = members(count=3)
    early = replace(one, node="n0", phase="Running", started=0.0)
    ended = replace(early, phase="Succeeded", finished=5.0)
    if not restarts:
        world.add(early)
    world.step(TaskSeen(ended))
    world.add(*others)
    world.sleep(30)
    assert {task.name for task in others} <= set(world.placed())


def test_those_whose_binds_are_refused_start_though_the_one_that_was_bound_has_ended() -> None:
    world = world_of(nodes=1, cpu=8)
    world.refuse = lambda bind: "" if bind.name == "g0" else "conflict"
    world.step(group(minimum=3))
    world.add(*members(count=3))
    assert set(world.placed()) == {"g0"}
    world.end("g0")
    world.refuse = lambda bind: ""
    world.sleep(30)
    assert {"g1", "g2"} <= set(world.placed())


def test_a_pod_that_failed_in_a_cut_start_and_came_again_starts_with_all_others() -> None:
    world = world_of(nodes=1, cpu=2)
    world.step(group(minimum=3))
    one, *others = members(count=3)
    world.step(TaskSeen(replace(one, node="n0", phase="Failed", started=0.0, finished=5.0)))
    world.add(*others, *members(count=1, first=3))
    world.sleep(30)
    assert world.placed() == {}, "there is room for two of three"


def test_nothing_is_kept_of_groups_and_pods_that_are_gone() -> None:
    world = world_of(nodes=1, cpu=2)
    world.step(group(minimum=3))
    world.add(*members(count=3))
    world.sleep(30)
    world.step(no_group())
    for name in list(world.tasks):
        world.delete(name)
    gangs = world.engine._state.gangs
    assert (gangs._gangs, gangs._of, gangs._ended, len(gangs._retries.keys)) == ({}, {}, {}, 0)
    world.sleep(30)
    assert gangs.next_due() > world.now


def test_a_pod_that_changes_its_group_starts_with_the_other_one() -> None:
    world = world_of()
    world.step(group("a", 2), group("b", 2))
    one, other = members("a", 1)[0], members("b", 1)[0]
    world.add(one, other)
    world.put(replace(one, gang=key("b")))
    assert set(world.placed()) == {"a0", "b0"}


def test_pods_that_ask_for_different_schedulers_wait() -> None:
    world = world_of()
    world.step(group(minimum=2))
    one, other = members(count=2)
    world.add(one, replace(other, profile="default-scheduler"))
    world.sleep(5)
    assert world.messages("g0") == [
        (
            "WaitingForGang",
            "the pods of PodGroup default/g ask for different schedulers: default-scheduler, eclectus",
        )
    ]


def test_more_pods_than_one_step_can_place_are_refused_with_the_number() -> None:
    world = world_of()
    world.step(group(minimum=MEMBERS_MOST + 1))
    world.add(*members(count=1))
    world.sleep(5)
    ((reason, message),) = world.messages("g0")
    assert reason == "SchedulerError"
    most = f"at most {MEMBERS_MOST} pods can start together"
    assert message == f"PodGroup default/g has minimum {MEMBERS_MOST + 1}; {most}"


# -- others ----------------------------------------------------------------------------------------


def test_a_gang_without_room_keeps_nobody_behind_it_waiting() -> None:
    world = world_of()
    world.step(group(minimum=5))
    world.add(*members(count=5, priority=9))
    world.add(*numbered(4))
    assert len(world.placed()) == 4


def test_the_turn_of_a_gang_is_that_of_its_first_pod() -> None:
    world = world_of(nodes=1, cpu=3)
    world.step(group(minimum=3))
    gang = [replace(task, created=5.0) for task in members(count=3)]
    elder = make_task("elder", created=1.0)
    world.add(*gang, elder)
    assert set(world.placed()) == {"elder"}
    other = world_of(nodes=1, cpu=3)
    other.step(group(minimum=3))
    other.add(*(replace(task, priority=1) for task in gang), elder)
    assert set(other.placed()) == {"g0", "g1", "g2"}


def test_tasks_behind_a_gang_are_offered_in_the_same_step() -> None:
    world = world_of(nodes=2, cpu=4)
    world.step(group(minimum=3))
    world.add(*members(count=3), *(replace(task, created=50.0) for task in numbered(4)))
    assert len(world.placed()) == 7


def test_a_policy_that_compares_class_queues_places_gangs_too() -> None:
    world = world_of(place=Tetris())
    world.step(group("a", 2), group("b", 2))
    world.add(*members("a", 2), *numbered(1), *members("b", 2))
    assert set(world.placed()) in ({"t0", "a0", "a1"}, {"t0", "b0", "b1"})


def attempts(world: World) -> list[float]:
    """At which times a gang that cannot start was tried."""
    count, times, counted = world.engine._state.counters.attempts, [], 0
    while world.now < 40 and world.engine.next_step_at() is not None:
        now = sum(count.values())
        if now != counted:
            times.append(world.now)
            counted = now
        world.advance_to_next_step()
    return times


def test_a_gang_that_fails_backs_off_as_a_whole() -> None:
    world = world_of()
    world.step(group(minimum=5))
    world.add(*members(count=7))
    assert attempts(world) == [0, 1, 3, 7, 15, 25, 35]


def test_a_gang_none_of_whose_pods_has_room_waits_for_a_change_and_costs_nothing() -> None:
    world = world_of()
    world.step(group(minimum=2))
    world.add(*members(count=2, cpu=3))
    assert attempts(world) == [0]
    assert world.messages("g1")[-1][1].startswith(
        "PodGroup default/g: no room for the 2 pods that start together; for one of them: 0/2 nodes"
    )
    world.step()
    world.put_node(make_node("wide", cpu=6))
    assert len(world.placed()) == 2


def test_a_bind_that_is_refused_leaves_the_others_bound_and_is_tried_again() -> None:
    world = world_of()
    world.refuse = lambda bind: "conflict" if bind.name == "g1" else ""
    world.step(group(minimum=3))
    world.add(*members(count=3))
    assert set(world.placed()) == {"g0", "g2"}
    world.refuse = lambda bind: ""
    world.sleep(5)
    assert set(world.placed()) == {"g0", "g1", "g2"}


# -- eviction and nomination -----------------------------------------------------------------------


def test_a_gang_that_is_not_complete_evicts_nobody_and_its_messages_say_so() -> None:
    world = world_of(nodes=2, cpu=2, relieve=Preemption())
    world.add(*numbered(4))
    world.step(group(minimum=2))
    world.add(*members(count=2, priority=9))
    world.sleep(30)
    assert world.victims() == []
    assert world.messages("g0")[-1][1].endswith(
        "preemption: not eligible: a pod group that is not complete evicts no pods."
    )
    world.delete("t0")
    world.delete("t1")
    world.sleep(20)
    assert len(world.placed()) == 4
    world.add(*members(count=1, first=5, priority=9))
    world.sleep(5)
    assert len(world.victims()) == 1, "beyond the quorum its pods are ordinary pods"


def test_no_room_is_held_for_a_part_of_a_gang() -> None:
    world = world_of(nodes=1, cpu=2)
    world.step(group(minimum=2))
    world.add(replace(members(count=1)[0], nominated="n0"))
    assert used(world) == 0
    assert not world.engine._state.placed.nominated
    world.add(*numbered(2))
    assert len(world.placed()) == 2


# -- policies --------------------------------------------------------------------------------------


class Deferring(Place):
    """Believes that a node will soon be better."""

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            yield Defer(task, Wait(until=view.now + 1.0))


class Refusing(Place):
    """Believes that no node is good enough."""

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for task in pending:
            yield Unschedulable(task, Reason("no node is good enough"))


@pytest.mark.parametrize("place", [Deferring, Refusing])
def test_a_gang_that_a_policy_keeps_waiting_beside_room_is_placed_after_the_limit(
    place: type[Place],
) -> None:
    world = world_of(place=place(), wait_limit=40.0)
    world.step(group(minimum=3))
    world.add(*members(count=3))
    world.sleep(30)
    assert world.binds == []
    assert world.messages("g0")[-1][0] == "WaitingForNode"
    world.sleep(25)
    assert len(world.placed()) == 3
    assert world.engine._state.counters.placed_by_limit == 3


def test_policies_with_node_queues_never_get_a_gang_and_it_starts_whole_on_the_fastest_nodes() -> None:
    world = world_of(place=Sparrow())
    world.step(group("a", 3), group("b", 3))
    world.add(*members("a", 3), *members("b", 3))
    assert set(world.placed()) == {"a0", "a1", "a2"}
    assert not world.engine._state.node_queues
    for name in list(world.placed()):
        world.end(name)
    world.sleep(10)
    assert set(world.placed()) == {"b0", "b1", "b2"}


class FirstThen(Place):
    """Places one pod on the first node, and answers the next one wrongly."""

    def __init__(self, how: str) -> None:
        self._how = how

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        for number, task in enumerate(pending):
            if not number:
                yield Bind(task, int(view.task_class(task).fits_now_rows[0]))
            elif self._how == "raises":
                raise RuntimeError("no idea")
            else:
                yield Enqueue(task, 0)


@pytest.mark.parametrize("how", ["raises", "waits in a node queue"])
def test_a_policy_that_fails_within_a_gang_has_placed_nothing(how: str) -> None:
    world = world_of(place=FirstThen(how))
    world.step(group(minimum=2))
    world.add(*members(count=2))
    assert world.binds == []
    assert used(world) == 0
    (fault,) = world.faults
    assert fault.policy == "FirstThen"
    world.sleep(3)
    assert "policy FirstThen failed" in world.messages("g0")[-1][1]


def test_gangs_of_two_profiles_start_by_their_own_policies() -> None:
    profiles = [make_profile(LeastAllocated()), make_profile(Sparrow(), name="other")]
    world = World(Engine(profiles, Unlearned()), make_node("n", cpu=4))
    world.step(group("a", 2), group("b", 2))
    world.add(*members("a", 2), *members("b", 2, profile="other"))
    assert len(world.placed()) == 4
