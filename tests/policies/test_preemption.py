"""Preemption: which pods are evicted, for whom, and what happens to the room that they leave."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from builders import make_engine, make_node, make_task
from eclectus.framework import Order, PlacePolicy
from eclectus.model.commands import Renominate
from eclectus.model.events import (
    BudgetGone,
    BudgetSeen,
    EvictRefused,
    NominateRefused,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import AntiAffinityTerm, Budget, HostPort, Node, Requirement, Taint, Task
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.place.allocation import LeastAllocated
from eclectus.policies.place.clwl import CentralLeastWait
from eclectus.policies.place.fit import BestFit
from eclectus.policies.place.power_of_two import PowerOfTwo
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.rosella import Rosella
from worlds import World, numbered, small_world

WEB = (("app", "web"),)


def world_of(*nodes: Node, place: PlacePolicy | None = None, **settings: int) -> World:
    """A world with preemption; without nodes, one node of four cores."""
    engine = make_engine(place or LeastAllocated(), relieve=Preemption(**settings))
    return World(engine, *nodes) if nodes else small_world(engine)


def bound(name: str, node: str, cpu: float = 1, *, priority: int = 0, **fields: object) -> Task:
    """A pod of another scheduler on this node."""
    return make_task(name, cpu, profile="other", node=node, priority=priority, **fields)  # type: ignore[arg-type]


def budget(allowed: int, **fields: object) -> BudgetSeen:
    """A budget of the pods with the label app=web."""
    return BudgetSeen(Budget("default", "b", (Requirement("app", "In", ("web",)),), allowed, **fields))  # type: ignore[arg-type]


# -- victims -------------------------------------------------------------------------------------


def test_as_few_pods_as_needed_are_evicted_and_the_preemptor_gets_their_room() -> None:
    world = world_of()
    world.add(*(bound(f"low{at}", "n0", started=float(at)) for at in range(4)))
    world.add(make_task("high", 2, priority=1))
    assert world.victims() == ["low2", "low3"]  # those that have run for the shortest time
    assert world.node_of("high") == "n0"
    assert not world.faults


def test_nobody_is_evicted_for_a_pod_of_the_same_priority() -> None:
    world = world_of()
    world.add(*numbered(5))
    world.sleep(60)
    assert not world.victims()


def test_pods_of_lower_priority_go_first() -> None:
    world = world_of()
    priorities = {"p3": 3, "p1": 1, "p2": 2, "p0": 0}
    world.add(*(bound(name, "n0", priority=priority) for name, priority in priorities.items()))
    world.add(make_task("high", 2, priority=9))
    assert world.victims() == ["p1", "p0"]


def test_a_pod_that_need_not_go_is_spared_though_it_is_less_important() -> None:
    world = world_of(make_node("n0", 4))
    world.add(bound("small", "n0", 1, priority=0), bound("large", "n0", 3, priority=1))
    world.add(make_task("high", 3, priority=9))
    assert world.victims() == ["large"]


def test_nobody_is_evicted_where_even_that_would_not_help() -> None:
    world = world_of(make_node("n0", 4))
    world.add(bound("high", "n0", 3, priority=9), bound("low", "n0", 1))
    world.add(make_task("preemptor", 2, priority=5))
    world.sleep(60)
    assert not world.victims()


def test_nodes_that_are_never_feasible_are_left_alone() -> None:
    world = world_of(make_node("n0", 4, taints=(Taint("t"),)), make_node("n1", 1))
    world.add(bound("low0", "n0", 4), bound("low1", "n1", 1))
    world.add(make_task("high", 2, priority=1))
    world.sleep(60)
    assert not world.victims()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param([(1, 0.0)], [(2, 0.0)], id="lowest highest priority"),
        pytest.param([(5, 0.0), (1, 0.0)], [(5, 0.0), (2, 0.0)], id="smallest sum of priorities"),
        pytest.param([(5, 0.0)], [(5, 0.0), (-3, 0.0)], id="fewest victims"),
        pytest.param([(1, 9.0)], [(1, 3.0)], id="latest start"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_node_where_eviction_costs_least_is_chosen(
    one: list[tuple[int, float]], other: list[tuple[int, float]], turned: bool
) -> None:
    world = world_of(make_node("n0", 4), make_node("n1", 4))
    nodes = ["n1", "n0"] if turned else ["n0", "n1"]
    for node, pods in zip(nodes, (one, other), strict=True):
        share = 4 / len(pods)
        tasks = [
            bound(f"{node}-{at}", node, share, priority=priority, started=started)
            for at, (priority, started) in enumerate(pods)
        ]
        world.add(*tasks)
    world.add(make_task("high", 4, priority=9))
    assert {name.split("-")[0] for name in world.victims()} == {nodes[0]}


# -- budgets -------------------------------------------------------------------------------------


def test_a_node_where_no_budget_is_violated_is_preferred() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.step(budget(0))
    world.add(bound("web", "n0", labels=WEB), bound("other", "n1", priority=1))
    world.add(make_task("high", priority=9))
    assert world.victims() == ["other"]


def test_on_one_node_pods_with_a_violated_budget_are_spared_first() -> None:
    world = world_of(make_node("n0", 2))
    world.step(budget(0))
    world.add(bound("web", "n0", labels=WEB), bound("other", "n0", priority=1))
    world.add(make_task("high", priority=9))
    assert world.victims() == ["other"]


def test_a_budget_is_violated_where_nothing_else_helps() -> None:
    world = world_of(make_node("n0", 1))
    world.step(budget(0))
    world.add(bound("web", "n0", labels=WEB))
    world.add(make_task("high", priority=9))
    assert world.victims() == ["web"]


def test_evictions_under_way_count_against_a_budget() -> None:
    nodes = [make_node(f"n{at}", 1) for at in range(4)]
    world = world_of(*nodes)
    world.terminates_at_once = False
    world.step(budget(1))
    world.add(*(bound(f"web{at}", f"n{at}", labels=WEB) for at in range(2)))
    world.add(*(bound(f"other{at}", f"n{at + 2}", priority=1) for at in range(2)))
    world.add(make_task("high0", priority=9))
    assert world.victims() == ["web0"]
    world.add(make_task("high1", priority=9), make_task("high2", priority=9))
    assert set(world.victims()) == {"web0", "other0", "other1"}


def test_an_empty_selector_a_disrupted_pod_and_a_deleted_budget_protect_nobody() -> None:
    for events in (
        [BudgetSeen(Budget("default", "b", (), 0))],
        [budget(0, disrupted=("web",))],
        [budget(0), BudgetGone("default", "b")],
    ):
        world = world_of(make_node("n0", 2))
        world.step(*events)
        world.add(bound("web", "n0", labels=WEB), bound("other", "n0", priority=1))
        world.add(make_task("high", priority=9))
        assert world.victims() == ["web"]


# -- ports, anti-affinity --------------------------------------------------------------------------


def test_a_host_port_is_freed() -> None:
    world = world_of()
    ports = (HostPort(80),)
    world.add(bound("web", "n0", 0, host_ports=ports), bound("other", "n0", 0))
    world.add(make_task("high", 0, priority=1, host_ports=ports))
    assert world.victims() == ["web"]
    assert world.node_of("high") == "n0"


def test_a_pod_whose_anti_affinity_keeps_the_preemptor_away_is_evicted() -> None:
    term = AntiAffinityTerm("zone", (Requirement("app", "In", ("web",)),), ("default",))
    world = world_of(make_node("n0", labels={"zone": "z"}), make_node("n1", labels={"zone": "z"}))
    world.add(bound("alone", "n0", anti_affinity_terms=(term,)), bound("other", "n0"))
    world.add(make_task("high", priority=1, labels=WEB))
    assert world.victims() == ["alone"]
    assert world.node_of("high") == "n0"


# -- the preemptor -------------------------------------------------------------------------------


def test_a_pod_with_policy_never_evicts_nobody_and_says_why() -> None:
    world = world_of(make_node("n0", 1))
    world.add(bound("low", "n0"))
    world.add(make_task("high", priority=9, preempts=False))
    world.sleep(60)
    assert not world.victims()
    (reason, message) = world.messages("high")[0]
    assert reason == "Unschedulable"
    assert message.endswith("1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never.")


def test_a_pod_for_which_nobody_can_be_evicted_says_so_in_kube_schedulers_words() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 4, taints=(Taint("t"),)))
    world.add(bound("other", "n0", priority=9))
    world.add(make_task("high", priority=9))
    world.sleep(2)
    assert world.messages("high")[0][1] == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). preemption: "
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_many_equal_preemptors_evict_each_victim_once_and_no_more_than_needed() -> None:
    world = world_of(*(make_node(f"n{at}", 4) for at in range(50)))
    world.terminates_at_once = False
    world.add(*(bound(f"low{at}", f"n{at // 4}") for at in range(200)))
    world.add(*numbered(80, "high", cpu=2, priority=1))
    world.sleep(60)
    assert len(world.victims()) == 160
    for name in world.victims():
        world.delete(name)
    world.sleep(5)
    assert all(world.node_of(f"high{at}") for at in range(80))
    assert len(world.victims()) == 160


def test_who_waits_for_victims_evicts_no_others() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.terminates_at_once = False
    world.add(bound("low0", "n0"), bound("low1", "n1"))
    world.add(make_task("high", priority=9))
    world.sleep(300)
    (victim,) = world.victims()
    assert not world.node_of("high")
    world.delete(victim)
    assert world.node_of("high") == world.tasks["high"].nominated


def test_room_elsewhere_that_comes_first_is_taken() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.terminates_at_once = False
    world.add(bound("low0", "n0"), bound("low1", "n1", priority=1))
    world.add(make_task("high", priority=9))
    assert world.victims() == ["low0"]
    world.delete("low1")
    assert world.node_of("high") == "n1"
    world.delete("low0")
    world.add(make_task("next"))
    assert world.node_of("next") == "n0"  # no room is held any more


def test_pods_that_are_terminating_are_used_before_others_are_evicted() -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1))
    world.add(bound("low0", "n0"), bound("going", "n1", deleting=True))
    world.add(make_task("high", priority=9))
    assert not world.victims()
    assert [each.node for each in world.nominations] == ["n1"]
    world.delete("going")
    assert world.node_of("high") == "n1"


@pytest.mark.parametrize("place", [Rosella, BestFit, PowerOfTwo, CentralLeastWait])
def test_it_works_beside_policies_that_let_tasks_wait(place: type[PlacePolicy]) -> None:
    world = world_of(make_node("n0", 1), make_node("n1", 1), place=place())
    world.add(*numbered(2, "low"))
    world.add(make_task("high", priority=9))
    world.sleep(5)
    assert len(world.victims()) == 1
    assert world.node_of("high")
    assert not world.faults


# -- nominations -----------------------------------------------------------------------------------


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
