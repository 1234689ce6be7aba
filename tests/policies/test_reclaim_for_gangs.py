"""A gang that waits takes room back for its pool as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eclectus.explain.pod import explain_pod
from eclectus.framework import RefusedGang, ReliefAction, View
from eclectus.model.commands import Fault, ReportReclaim
from eclectus.model.events import BudgetSeen, NodeGone, PoolSeen, TaskSeen
from eclectus.model.objects import Budget, Requirement, Task
from eclectus.model.pool import PoolPreemption
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.relieve.reclaim import Reclaim
from eclectus.policies.shared import Chain
from gangs import group, key, no_group
from pool_worlds import AFTER_60, FAIR_60, cores, held, mine, pods, world_of
from worlds import World


def gang(pool: str, count: int, name: str = "g", **fields: Any) -> list[Task]:
    """Pods of a PodGroup in a pool."""
    return pods(pool, count, **{"gang": key(name), **fields})


def starved(count: int, *, least: float = 4, nodes: tuple[float, ...] = (4, 4), **b: Any) -> World:
    """Pool b holds all; a gang of so many pods of pool a waits, which claims its minimum after 60 s."""
    world = world_of(mine("a", min_share=cores(least), preemption=AFTER_60), mine("b", **b), nodes=nodes)
    world.step(group("g", count))
    world.add(*pods("b", int(sum(nodes))))
    return world


def victims_of(world: World) -> int:
    return len(world.victims())


def test_a_gang_takes_a_minimum_back_on_several_nodes() -> None:
    world = starved(4, nodes=(3, 3, 2))
    world.add(*gang("a", 4))
    world.sleep(59.0)
    assert victims_of(world) == 0
    world.sleep(4.0)
    assert (victims_of(world), held(world, "a"), held(world, "b")) == (4, 4, 4)
    world.sleep(3600.0)
    assert victims_of(world) == 4


def test_a_gang_takes_room_back_when_pods_are_old_enough_to_the_very_time() -> None:
    world = starved(4, preemption=PoolPreemption(min_runtime_seconds=300.0))
    world.add(*gang("a", 4))
    world.sleep(299.99)
    assert victims_of(world) == 0
    world.sleep(0.02)
    assert victims_of(world) == 4


def test_what_is_free_is_used_and_no_more_is_taken_than_is_needed() -> None:
    world = world_of(mine("a", min_share=cores(4), preemption=AFTER_60), mine("b"), nodes=(4, 4))
    world.step(group("g", 4))
    world.add(*pods("b", 6))
    world.add(*gang("a", 4))
    world.sleep(600.0)
    assert (victims_of(world), held(world, "a")) == (2, 4)


def test_nobody_goes_for_a_gang_that_does_not_fit_then() -> None:
    """Pods of b keep its minimum of 5, so there is room for 3 of 4."""
    world = starved(4, min_share=cores(5))
    world.add(*gang("a", 4))
    world.sleep(3600.0)
    assert (victims_of(world), held(world, "a")) == (0, 0)
    assert not world.nominations


def test_nor_does_anybody_for_one_with_a_pod_that_fits_no_node() -> None:
    world = starved(3)
    world.add(*gang("a", 2), *gang("a", 1, first=2, cpu=9))
    world.sleep(3600.0)
    assert victims_of(world) == 0


def test_a_gang_takes_no_more_than_its_pools_share_beyond_its_minimum() -> None:
    """Two pools of equal weight: b gives what it has above its share of 4; a gang of 5 finds room for 4."""
    world = starved(5, least=2)
    world.add(*gang("a", 5))
    world.sleep(3600.0)
    assert victims_of(world) == 0
    world.step(PoolSeen(mine("b", weight=0.5)))
    world.sleep(60.0)
    assert (victims_of(world), held(world, "a")) == (5, 5)


def test_a_share_is_taken_back_only_as_far_as_it_is_fair_for_the_whole_gang() -> None:
    """Of 8 cores a gang of 4 is half; one of 6 would leave b the smaller part of its share."""
    for count, victims in ((4, 4), (6, 0)):
        world = world_of(mine("a", preemption=FAIR_60), mine("b"), nodes=(4, 4))
        world.step(group("g", count))
        world.add(*pods("b", 8))
        world.add(*gang("a", count))
        world.sleep(600.0)
        assert victims_of(world) == victims


def test_the_newest_go_and_none_that_is_too_young() -> None:
    world = starved(2, preemption=PoolPreemption(min_runtime_seconds=300.0))
    world.sleep(200.0)
    world.add(*gang("a", 2))
    world.sleep(90.0)
    assert victims_of(world) == 0
    world.sleep(60.0)
    assert victims_of(world) == 2


def test_pools_that_allow_nothing_give_nothing() -> None:
    world = starved(2, preemption=PoolPreemption(allow_from=False))
    world.add(*gang("a", 2))
    world.sleep(3600.0)
    assert victims_of(world) == 0


def test_a_budget_that_does_not_bear_all_victims_keeps_them() -> None:
    """On each node it would bear those of that node."""
    label = (("app", "x"),)
    world = world_of(mine("a", min_share=cores(4), preemption=AFTER_60), mine("b"), nodes=(2, 2, 2, 2))
    world.step(group("g", 4))
    world.add(*pods("b", 8, labels=label))
    budget = Budget("default", "b", (Requirement("app", "In", ("x",)),), 3)
    world.step(BudgetSeen(budget))
    world.add(*gang("a", 4))
    world.sleep(600.0)
    assert victims_of(world) == 0
    world.step(BudgetSeen(replace(budget, allowed=4)))
    world.sleep(60.0)
    assert (victims_of(world), held(world, "a")) == (4, 4)


def test_a_limit_of_its_pool_keeps_a_gang_from_taking_anything() -> None:
    world = starved(4)
    world.step(PoolSeen(mine("a", min_share=cores(3), max_share=cores(3), preemption=AFTER_60)))
    world.add(*gang("a", 4))
    world.sleep(3600.0)
    assert victims_of(world) == 0


def test_a_gang_that_is_not_complete_takes_nothing() -> None:
    world = starved(4)
    world.add(*gang("a", 3))
    world.sleep(3600.0)
    assert victims_of(world) == 0
    world.add(*gang("a", 1, first=3))
    world.sleep(70.0)
    assert (victims_of(world), held(world, "a")) == (4, 4)


def test_so_many_pods_have_room_as_start_together_and_the_others_follow_one_by_one() -> None:
    world = starved(2)
    world.terminates_at_once = False
    world.add(*gang("a", 3))
    world.sleep(63.0)
    assert (victims_of(world), len(nominated(world))) == (2, 2)
    world.terminates_at_once = True
    for name in world.victims():
        world.delete(name)
    world.sleep(120.0)
    assert (victims_of(world), held(world, "a")) == (3, 3)


def test_pods_that_never_preempt_take_nothing() -> None:
    world = starved(2)
    world.add(*gang("a", 2, preempts=False))
    world.sleep(3600.0)
    assert victims_of(world) == 0


def test_a_dry_run_says_once_a_minute_how_many_would_go() -> None:
    world = starved(4)
    world.step(PoolSeen(mine("a", min_share=cores(4), preemption=replace(AFTER_60, dry_run=True))))
    world.add(*gang("a", 4))
    world.sleep(100.0)
    said = [each for each in world.faults if isinstance(each, ReportReclaim)]
    assert [(each.pool, each.victims) for each in said] == [("a", 4)]
    assert victims_of(world) == 0
    assert not world.nominations


def test_a_whole_gang_may_be_the_victim_of_a_gang() -> None:
    world = world_of(mine("a", min_share=cores(3), preemption=AFTER_60), mine("b"), nodes=(3, 3))
    world.step(group("g", 3), group("v", 6))
    world.add(*gang("b", 6, name="v"))
    world.add(*gang("a", 3))
    world.sleep(600.0)
    assert (victims_of(world), held(world, "a")) == (6, 3)


def test_two_gangs_take_each_its_own() -> None:
    world = world_of(mine("a", min_share=cores(4), preemption=AFTER_60), mine("b"), nodes=(4, 4))
    world.step(group("g", 2), group("h", 2))
    world.add(*pods("b", 8))
    world.add(*gang("a", 2), *gang("a", 2, name="h", first=2))
    world.sleep(600.0)
    assert (victims_of(world), held(world, "a"), held(world, "b")) == (4, 4, 4)


# -- while room is held ------------------------------------------------------------------------------


def holding(count: int = 4, **fields: Any) -> World:
    """Victims of a gang are on their way out, and none has ended."""
    world = starved(count, **fields)
    world.terminates_at_once = False
    world.add(*gang("a", count))
    world.sleep(63.0)
    assert len(nominated(world)) == count
    return world


def nominated(world: World) -> list[str]:
    state = world.engine._state
    return sorted(task.name for node in state.placed.nominated for task in state.placed.nominated_on(node))


def test_none_starts_before_all_can() -> None:
    world = holding()
    for at, name in enumerate(world.victims(), 1):
        assert held(world, "a") == 0
        world.delete(name)
        world.sleep(1.0)
        assert held(world, "a") == (4 if at == 4 else 0)


def test_nobody_else_takes_the_room_meanwhile() -> None:
    world = holding()
    for name in world.victims()[:3]:
        world.delete(name)
    world.add(*pods("b", 3, first=20), *pods("a", 2, first=30, priority=0))
    world.sleep(5.0)
    assert held(world, "a") == 0
    assert not {"b20", "b21", "b22", "a30", "a31"} & set(world.placed())


@pytest.mark.parametrize("change", ["deleted", "gated", "group gone", "node gone", "more needed"])
def test_a_gang_that_cannot_start_any_more_gives_all_room_back(change: str) -> None:
    world = holding()
    if change == "deleted":
        world.delete("a0")
    elif change == "gated":
        world.step(TaskSeen(replace(world.tasks["a0"], gates=("gate",))))
    elif change == "group gone":
        world.step(no_group("g"))
    elif change == "node gone":
        world.step(NodeGone(world.tasks["a0"].nominated))
    else:
        world.step(group("g", 5))
    world.sleep(0.1)
    assert nominated(world) == []
    assert held(world, "a") == 0
    assert world.engine.queue_counts().nominated == 0


def test_a_gang_whose_pool_gets_a_limit_gives_all_room_back_and_says_so() -> None:
    world = holding()
    world.step(PoolSeen(mine("a", min_share=cores(3), max_share=cores(3), preemption=AFTER_60)))
    world.sleep(30.0)
    assert nominated(world) == []
    found = explain_pod(world.engine, "default", "a0", world.now).reclaim
    assert found is not None
    assert found.state == "limited"
    assert victims_of(world) == 4


def test_a_gang_of_which_enough_have_started_elsewhere_keeps_room_as_ordinary_pods() -> None:
    world = holding()
    world.step(group("g", 1))
    for name in list(world.victims()):
        world.delete(name)
    world.sleep(2.0)
    assert held(world, "a") == 4


def test_what_is_said_of_a_gang_for_which_room_is_made() -> None:
    world = holding()
    found = explain_pod(world.engine, "default", "a1", world.now)
    assert found.reclaim is not None
    assert found.reclaim.state == "nominated"
    assert found.waiting is not None
    assert "room is held for the 4 pods that start together" in found.waiting.reason


def test_what_is_said_of_a_gang_for_which_nobody_may_go() -> None:
    world = starved(4, min_share=cores(5))
    world.add(*gang("a", 4))
    world.sleep(100.0)
    found = explain_pod(world.engine, "default", "a1", world.now).reclaim
    assert found is not None
    assert found.state == "notHelpful"
    assert found.reason == (
        "pool a may take its minimum back, but so far no pods that may go make room for all 4 pods that "
        "start together, and none goes for fewer"
    )


def test_priorities_alone_evict_nobody_for_a_gang() -> None:
    world = world_of(mine("a"), nodes=(4,), relieve=Chain((Reclaim(), Preemption())))
    world.step(group("g", 2))
    world.add(*pods("a", 4, first=10))
    world.add(*gang("a", 2, priority=5))
    world.sleep(600.0)
    assert victims_of(world) == 0


class PartialReclaim(Reclaim):
    """Forgets a pod of each gang."""

    def relieve_gang(self, view: View, refused: RefusedGang) -> Iterator[ReliefAction]:
        for action in super().relieve_gang(view, refused):
            if action.task != refused.tasks[-1]:
                yield action


def test_a_policy_that_makes_room_for_a_part_of_a_gang_evicts_nobody() -> None:
    world = world_of(
        mine("a", min_share=cores(4), preemption=AFTER_60), mine("b"), nodes=(8,), relieve=PartialReclaim()
    )
    world.step(group("g", 4))
    world.add(*pods("b", 8))
    world.add(*gang("a", 4))
    world.sleep(70.0)
    faults = [each.message for each in world.faults if isinstance(each, Fault)]
    assert faults
    assert faults[0].endswith("would go for a gang of which 3 of 4 have room")
    assert victims_of(world) == 0
    assert nominated(world) == []


def test_controllers_that_create_victims_again_do_not_keep_it_going() -> None:
    world = world_of(
        mine("a", min_share=cores(4), preemption=AFTER_60),
        mine("b", preemption=PoolPreemption(min_share_seconds=60.0, fair_share_seconds=60.0)),
        nodes=(4, 4),
    )
    world.step(group("g", 4))
    created = pods("b", 8)
    world.add(*created)
    world.add(*gang("a", 4))
    for at in range(60):
        known = len(world.victims())
        world.sleep(10.0)
        again = [each for each in created if each.name in world.victims()[known:]]
        world.add(*(replace(each, uid=f"{each.uid}-{at}", created=world.now) for each in again))
    assert (victims_of(world), held(world, "a")) == (4, 4)


GANGS = st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0.5, 1.0, 2.0, 3.0])), min_size=1, max_size=3)


@settings(max_examples=75, deadline=None)
@given(GANGS, st.integers(0, 6), st.integers(0, 6), st.integers(0, 7), st.booleans())
def test_pods_go_only_for_gangs_that_start(
    drawn: list[tuple[int, float]], least: int, kept: int, allowed: int, is_pair: bool
) -> None:
    """Gangs of (pods, cores of each) in pool a; pool b keeps a minimum and a budget."""
    label = (("app", "x"),)
    rules = PoolPreemption(min_share_seconds=60.0, fair_share_seconds=90.0)
    world = world_of(
        mine("a", min_share=cores(least), preemption=rules), mine("b", min_share=cores(kept)), nodes=(4, 3, 1)
    )
    world.step(BudgetSeen(Budget("default", "b", (Requirement("app", "In", ("x",)),), allowed)))
    world.step(group("pair", 2))
    paired = {"gang": key("pair")} if is_pair else {}
    world.add(*pods("b", 2, labels=label, **paired), *pods("b", 6, first=2, labels=label))
    serial = 0
    for at, (count, each) in enumerate(drawn):
        world.step(group(f"g{at}", count))
        world.add(*gang("a", count, name=f"g{at}", first=serial, cpu=each))
        serial += count
    world.sleep(600.0)
    started = set(world.placed())
    whole, serial = 0, 0
    for count, _ in drawn:
        names = {f"a{number}" for number in range(serial, serial + count)}
        assert names & started in (set(), names), "a gang starts as a whole or not"
        whole += names <= started
        serial += count
    assert len(world.victims()) <= allowed
    assert not world.victims() or whole, "pods went for nothing"
    assert nominated(world) == []
    assert not [each for each in world.faults if isinstance(each, Fault)]


def test_a_large_gang_costs_no_search_of_all_nodes_for_each_pod() -> None:
    world = world_of(mine("a", min_share=cores(100), preemption=AFTER_60), mine("b"), nodes=(2,) * 100)
    world.step(group("g", 100))
    world.add(*pods("b", 200))
    world.add(*gang("a", 100))
    world.sleep(70.0)
    assert (victims_of(world), held(world, "a")) == (100, 100)
