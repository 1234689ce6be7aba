"""Reclaim: what starved pools take back, from whom, when, and that it ends."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_spec
from driven_engine import reclaim_first
from eclectus.framework import Relieve
from eclectus.model.events import BudgetSeen, PoolSeen, TaskSeen
from eclectus.model.objects import Budget, Requirement, Task
from eclectus.model.pool import Pool, PoolPreemption
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from eclectus.policies.relieve.preemption import Preemption
from eclectus.policies.relieve.reclaim import Reclaim
from eclectus.policies.rosella import Rosella
from eclectus.policies.shared import Chain
from pool_worlds import AFTER_60, FAIR_60, cores, held, mine, pods, world_of
from worlds import World

# -- when, and how much ----------------------------------------------------------------------------


def test_a_minimum_is_taken_back_after_its_time_though_nothing_happens() -> None:
    world = world_of(mine("a", min_share=cores(3), preemption=AFTER_60), mine("b"))
    world.add(*pods("b", 8))
    world.sleep(100.0)
    world.add(*pods("a", 5))
    world.sleep(59.0)
    assert world.victims() == []
    world.sleep(4.0)
    assert len(world.victims()) == 3
    assert (held(world, "a"), held(world, "b")) == (3, 5)
    world.sleep(24 * 3600.0)
    assert len(world.victims()) == 3


def test_an_eviction_names_the_pool_and_its_claim() -> None:
    world = world_of(mine("a", min_share=cores(1), preemption=AFTER_60), mine("b"))
    world.add(*pods("b", 8))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert [(each.pool, each.claim, each.preemptor_name) for each in world.evictions] == [
        ("a", "minimum", "a0")
    ]


def test_no_more_is_taken_back_than_is_needed() -> None:
    """volcano#5994: of eleven pods of one core on a node one goes, where ten went."""
    world = world_of(mine("a", min_share=cores(3), preemption=AFTER_60), mine("b"), nodes=(11,))
    world.add(*pods("b", 11))
    world.add(*pods("a", 1))
    world.sleep(200.0)
    assert len(world.victims()) == 1


def test_the_newest_pods_go() -> None:
    world = world_of(mine("a", min_share=cores(2), preemption=AFTER_60), mine("b"))
    world.add(*pods("b", 6))
    world.sleep(10.0)
    world.add(*pods("b", 2, first=6))
    world.add(*pods("a", 2))
    world.sleep(70.0)
    assert set(world.victims()) == {"b6", "b7"}


def test_a_clock_begins_anew_when_the_demand_has_gone_in_between() -> None:
    """R2: below its minimum at 10 s, without demand from 40 to 45 s, it claims at 105 s and not at 70."""
    world = world_of(mine("a", min_share=cores(2), preemption=AFTER_60), mine("b"))
    world.add(*pods("b", 8))
    world.sleep(10.0)
    world.add(*pods("a", 1))
    world.sleep(30.0)
    world.delete("a0")
    world.sleep(5.0)
    world.add(*pods("a", 1, first=1))
    world.sleep(59.0)
    assert world.victims() == []
    world.sleep(2.0)
    assert len(world.victims()) == 1


def test_a_pool_far_below_its_share_takes_it_back_and_one_above_half_of_it_does_not() -> None:
    world = world_of(mine("a", preemption=FAIR_60), mine("b"))
    world.add(*pods("b", 8))
    world.add(*pods("a", 8))
    world.sleep(70.0)
    assert (held(world, "a"), held(world, "b")) == (4, 4)
    other = world_of(mine("a", preemption=FAIR_60), mine("b"))
    other.add(*pods("a", 2), *pods("b", 6))
    other.add(*pods("a", 6, first=2))
    other.sleep(600.0)
    assert other.victims() == []


def test_both_claims_take_the_larger_and_not_the_sum() -> None:
    both = PoolPreemption(min_share_seconds=60.0, fair_share_seconds=60.0)
    world = world_of(mine("a", min_share=cores(2), preemption=both), mine("b"))
    world.add(*pods("b", 8))
    world.add(*pods("a", 8))
    world.sleep(600.0)
    assert (held(world, "a"), held(world, "b")) == (4, 4)


def test_without_a_time_nothing_is_taken_back() -> None:
    world = world_of(mine("a", min_share=cores(3)), mine("b"))
    world.add(*pods("b", 8))
    world.add(*pods("a", 5))
    world.sleep(3600.0)
    assert world.victims() == []


# -- from whom -------------------------------------------------------------------------------------


def test_a_pool_at_its_own_minimum_gives_nothing() -> None:
    world = world_of(
        mine("a", min_share=cores(4), preemption=AFTER_60), mine("b", min_share=cores(5)), mine("c")
    )
    world.add(*pods("b", 5), *pods("c", 3))
    world.add(*pods("a", 4))
    world.sleep(300.0)
    assert {name[0] for name in world.victims()} == {"c"}
    assert held(world, "b") == 5


def test_claims_of_one_step_leave_a_pool_its_minimum() -> None:
    """Minima of 6 and 3 cores of 8: pods that go for one claimant are no longer there for the next."""
    world = world_of(mine("a", min_share=cores(6), preemption=AFTER_60), mine("b", min_share=cores(3)))
    world.add(*pods("b", 8))
    world.add(*pods("a", 6))
    world.sleep(600.0)
    assert held(world, "b") == 3


@pytest.mark.parametrize("at_once", [6, 2])
def test_claims_of_many_pods_together_leave_the_victims_pools_their_minima(at_once: int) -> None:
    """What goes for one claimant is not counted as the victim's when the next one is asked about."""
    soon = PoolPreemption(min_share_seconds=0.0)
    world = world_of(
        mine("a", min_share=cores(4), preemption=soon),
        mine("b", min_share=cores(4)),
        mine("c", min_share=cores(4)),
        nodes=(12,),
    )
    world.terminates_at_once = False
    world.add(*pods("b", 6))
    world.sleep(10.0)
    world.add(*pods("c", 6))
    world.sleep(10.0)
    for first in range(0, 6, at_once):
        world.add(*pods("a", at_once, first=first))
        world.sleep(2.0)
    assert sorted(name[0] for name in world.victims()) == ["b", "b", "c", "c"]


def test_pods_that_are_deleted_are_not_counted_as_what_their_pool_keeps() -> None:
    soon = PoolPreemption(min_share_seconds=0.0)
    pools = mine("a", min_share=cores(4), preemption=soon), mine("b", min_share=cores(4)), mine("c")
    world = world_of(*pools, nodes=(12,))
    world.terminates_at_once = False
    world.add(*pods("b", 6), *pods("c", 6))
    world.step(*(TaskSeen(replace(world.tasks[name], deleting=True)) for name in ("b0", "b1")))
    world.sleep(10.0)
    world.add(*pods("a", 4))
    world.sleep(5.0)
    assert [name[0] for name in world.victims()] == ["c", "c"]


def test_one_pod_of_four_cores_is_not_taken_from_a_pool_with_a_minimum_of_three() -> None:
    """R3, volcano#4947: evicting it leaves 0 of 3, and it would be first again; as four pods one goes."""
    pools = (
        mine("a", min_share=cores(3)),
        mine("b", min_share=cores(5), preemption=AFTER_60),
    )
    world = world_of(*pools)
    world.add(*pods("a", 1, cpu=4), *pods("b", 1, cpu=1))
    world.add(*pods("b", 1, cpu=4, first=1))
    world.sleep(3600.0)
    assert world.victims() == []
    world = world_of(*pools)
    world.add(*pods("a", 4), *pods("b", 1))
    world.add(*pods("b", 1, cpu=4, first=1))
    world.sleep(3600.0)
    assert len(world.victims()) == 1
    assert "b1" in world.placed()


@pytest.mark.parametrize("chain", [(), (Preemption(),)])
def test_pods_that_are_too_young_are_spared_until_they_are_not_to_the_very_time(chain: Any) -> None:
    spared = PoolPreemption(min_runtime_seconds=300.0)
    pools = mine("a", min_share=cores(2), preemption=AFTER_60), mine("b", preemption=spared)
    world = world_of(*pools, relieve=Chain((Reclaim(), *chain)))
    world.sleep(17.0)
    world.add(*pods("b", 8))
    world.add(*pods("a", 2))
    world.sleep(299.99)
    assert world.victims() == []
    world.sleep(0.02)
    assert len(world.victims()) == 2


def test_pods_that_may_not_go_anyway_are_not_waited_for() -> None:
    """They are of pools that allow nothing to be taken, or need it: their ages matter to nobody."""
    spared, reclaim = PoolPreemption(min_runtime_seconds=300.0), Reclaim()
    world = world_of(
        mine("a", min_share=cores(2), preemption=AFTER_60),
        mine("b", preemption=replace(spared, allow_from=False)),
        mine("c", min_share=cores(4), preemption=spared),
        relieve=reclaim,
    )
    world.add(*pods("b", 4), *pods("c", 4))
    world.add(*pods("a", 2))
    world.sleep(100.0)
    assert reclaim.next_at(world.engine._state.view) == inf
    world.sleep(300.0)
    assert world.victims() == []


def test_a_pool_that_allows_nothing_to_be_taken_keeps_its_pods() -> None:
    world = world_of(
        mine("a", min_share=cores(2), preemption=AFTER_60),
        mine("b", preemption=PoolPreemption(allow_from=False)),
    )
    world.add(*pods("b", 8))
    world.add(*pods("a", 2))
    world.sleep(600.0)
    assert world.victims() == []


def test_no_budget_is_violated() -> None:
    world = world_of(mine("a", min_share=cores(2), preemption=AFTER_60), mine("b"))
    selector = (Requirement("app", "In", ("x",)),)
    world.step(BudgetSeen(Budget("default", "b", selector, 0)))
    world.add(*pods("b", 7, labels=(("app", "x"),)), *pods("b", 1, first=7))
    world.add(*pods("a", 2))
    world.sleep(600.0)
    assert world.victims() == ["b7"]


def test_pods_on_nodes_that_the_claimant_cannot_use_are_left_alone() -> None:
    world = world_of(mine("a", min_share=cores(2), preemption=AFTER_60), mine("b"), nodes=(4, 4))
    world.add(*pods("b", 8))
    world.add(*pods("a", 2, node_selector=(("kubernetes.io/hostname", "elsewhere"),)))
    world.sleep(600.0)
    assert world.victims() == []


def test_a_pod_that_fits_no_node_does_not_keep_the_next_of_its_pool_from_its_room() -> None:
    world = world_of(mine("a", min_share=cores(2), preemption=AFTER_60), mine("b"))
    world.add(*pods("b", 8))
    world.add(*pods("a", 1, cpu=99), *pods("a", 1, first=1))
    world.sleep(600.0)
    assert [(each.name[0], each.preemptor_name) for each in world.evictions] == [("b", "a1")]


def test_a_large_pod_that_may_not_go_does_not_end_the_search() -> None:
    """It is the newest of its node; without it its pool would lack its minimum."""
    world = world_of(
        mine("a", min_share=cores(1), preemption=AFTER_60), mine("b", min_share=cores(5)), nodes=(8,)
    )
    world.add(*pods("b", 4))
    world.sleep(10.0)
    world.add(*pods("b", 1, cpu=4, first=4))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert len(world.victims()) == 1
    assert "b4" in world.placed()


def test_nobody_is_evicted_for_a_pod_that_is_deferred() -> None:
    """It waits by choice for the fast node, which b fills, beside a slow one with room."""
    speeds, place = ExactSpeeds({"fast": 0.1}, otherwise=0.001), Rosella(theta=6.0)
    engine = make_engine(place, speeds, order=FairPools(), relieve=Reclaim(), wait_limit=None)
    world = World(engine, make_node("fast", cpu=4), make_node("slow", cpu=4))
    world.step(*map(PoolSeen, (mine("a", min_share=cores(4), preemption=AFTER_60), mine("b"))))
    world.add(*pods("b", 4))
    assert set(world.placed().values()) == {"fast"}
    world.add(*pods("a", 2))
    world.sleep(10.0)
    assert engine._state.deferrals.waits
    assert held(world, "a") == 0
    world.sleep(600.0)
    assert world.victims() == []


def test_a_starved_pool_is_seen_behind_a_hundred_pods_of_another() -> None:
    world = world_of(mine("a", min_share=cores(1), preemption=AFTER_60), mine("b"))
    world.add(*pods("b", 200))
    world.add(*pods("a", 1, created=999.0))
    world.sleep(70.0)
    assert len(world.victims()) == 1


@pytest.mark.parametrize("relieve", [Preemption, reclaim_first])
@pytest.mark.parametrize(("priority", "victims"), [(0, ["a0"]), (10, [])])
def test_a_high_priority_takes_nothing_from_another_pool(
    priority: int, victims: list[str], relieve: Callable[[], Relieve]
) -> None:
    """Pool b has its share. Of a's own pods one of lower priority goes, and none of the same."""
    world = world_of(mine("a"), mine("b"), nodes=(2,), relieve=relieve())
    world.add(*pods("a", 1, priority=priority), *pods("b", 1))
    world.add(*pods("a", 1, first=1, priority=10))
    world.sleep(120.0)
    assert world.victims() == victims


def test_the_room_of_a_claimant_is_not_taken_by_a_high_priority_of_another_pool() -> None:
    world = world_of(mine("a", min_share=cores(1), preemption=AFTER_60), mine("b"), relieve=Reclaim())
    world.terminates_at_once = False
    world.add(*pods("b", 8))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    (victim,) = world.victims()
    world.add(*pods("b", 1, first=99, priority=1000))
    world.delete(victim)
    world.sleep(5.0)
    assert world.node_of("a0") == "n0"


# -- where pods may use few nodes ------------------------------------------------------------------

ON_N0 = (("gpu", "a100"),)


def few_nodes(a: Pool, *others: Pool) -> World:
    """One node of four cores is all that pods of a may use, and pods of b fill it; 12 cores are idle."""
    world = world_of(a, *others, nodes=(4, 12))
    world.put_node(make_node("n0", cpu=4, labels=dict(ON_N0)))
    world.add(*pods("b", 4, node_selector=ON_N0))
    world.add(*pods("a", 3, node_selector=ON_N0))
    world.sleep(300.0)
    return world


def test_a_minimum_holds_on_the_few_nodes_that_its_pods_may_use() -> None:
    """No pool has more than its share of the whole cluster: it has room for all."""
    world = few_nodes(mine("a", min_share=cores(2), preemption=AFTER_60), mine("b"))
    assert (held(world, "a"), len(world.victims())) == (2, 2)


def test_a_pool_keeps_its_own_minimum_there() -> None:
    world = few_nodes(mine("a", min_share=cores(2), preemption=AFTER_60), mine("b", min_share=cores(3)))
    assert (held(world, "a"), held(world, "b")) == (1, 3)


def test_a_share_is_of_the_whole_cluster_and_is_not_taken_there() -> None:
    world = few_nodes(mine("a", preemption=FAIR_60), mine("b"))
    assert world.victims() == []


def test_pools_above_their_share_give_first() -> None:
    """Pod b of n0 would do; but c has more than its share, and a may use its node too."""
    world = world_of(
        mine("a", min_share=cores(1), preemption=AFTER_60), mine("b"), mine("c", weight=0.5), nodes=(1, 3)
    )
    world.put_node(make_node("n0", cpu=1, labels=dict(ON_N0)))
    world.add(*pods("b", 1, node_selector=ON_N0))
    world.add(*pods("c", 3))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert [name[0] for name in world.victims()] == ["c"]


def test_a_minimum_beyond_the_share_of_the_pool_above_takes_nothing_within_shares() -> None:
    """Of 8 cores p and q have 4 each; the minimum of a, below p, is 6."""
    world = world_of(
        Pool("p"), mine("a", parent="p", min_share=cores(6), preemption=AFTER_60), mine("q"), nodes=(4, 4)
    )
    world.add(*pods("a", 4), *pods("q", 4))
    world.add(*pods("a", 2, first=4), *pods("q", 4, first=4))
    world.sleep(600.0)
    assert world.victims() == []


# -- that it ends ----------------------------------------------------------------------------------


def live_through(world: World, seconds: float) -> None:
    """Let time pass, in which controllers create every victim again at once."""
    end, serial = world.now + seconds, 0
    known = len(world.evictions)
    while world.now < end:
        world.sleep(min(5.0, end - world.now))
        for each in world.evictions[known:]:
            serial += 1
            gone = next(task for task in CREATED[each.name[0]] if task.name == each.name.partition("-")[0])
            again = replace(gone, uid=f"uid-again{serial}", name=f"{gone.name}-{serial}", created=world.now)
            world.add(again)
        known = len(world.evictions)


CREATED: dict[str, list[Task]] = {}


def test_controllers_that_create_victims_again_do_not_keep_it_going() -> None:
    """kueue#3779: G has a minimum of 300m; A holds 100 + 100, B 50 + 50; G's pods of 50 and 100 wait."""
    g = Pool("g", min_share=cores(0.3), preemption=AFTER_60)
    world = world_of(g, mine("x", parent="g"), mine("a"), mine("b"), nodes=(0.3,))
    CREATED.clear()
    CREATED.update(
        a=pods("a", 2, cpu=0.1), b=pods("b", 2, cpu=0.05), x=[*pods("x", 1, cpu=0.05), *pods("x", 1, 0.1, 1)]
    )
    world.add(*CREATED["a"], *CREATED["b"])
    world.add(*CREATED["x"])
    live_through(world, 600.0)
    assert held(world, "x") == 2
    of_each = [(each.preemptor_name, each.name[0]) for each in world.evictions]
    assert of_each == [("x0", "a"), ("x1", "a")], "one for each"
    live_through(world, 3600.0)
    assert len(world.victims()) == 2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 8), st.sampled_from([0.5, 1.0, 2.0])),
        min_size=2,
        max_size=4,
    )
)
def test_claims_end_and_no_pool_is_pushed_below_its_minimum(
    drawn: list[tuple[int, int, int, float]],
) -> None:
    """Of pools of (minimum, weight, pods, cores of each); the first has the nodes to itself at first."""
    rules = PoolPreemption(min_share_seconds=10.0, fair_share_seconds=20.0)
    pools = [
        mine("pqrs"[at], min_share=cores(least), weight=float(weight), preemption=rules)
        for at, (least, weight, _, _) in enumerate(drawn)
    ]
    world = world_of(*pools, nodes=(4, 4))
    CREATED.clear()
    CREATED.update({"pqrs"[at]: pods("pqrs"[at], count, cpu) for at, (_, _, count, cpu) in enumerate(drawn)})
    world.add(*CREATED["p"])
    world.add(*(task for name, tasks in CREATED.items() if name != "p" for task in tasks))
    live_through(world, 300.0)
    count = len(world.victims())
    assert count <= 3 * sum(each[2] for each in drawn)
    live_through(world, 600.0)
    assert len(world.victims()) == count, "it has ended"
    state = world.engine._state
    for pool in pools:
        if state.starvation.below_min_since(pool.name) is not None:
            waiting = [task for name, task in world.tasks.items() if name[0] == pool.name and not task.node]
            assert waiting


@pytest.mark.parametrize("seconds", [0.0, 10.0])
@pytest.mark.parametrize("phase", [0.0, 0.25, 0.7])
def test_a_minimum_is_taken_back_on_time_though_something_changes_all_the_time(
    seconds: float, phase: float
) -> None:
    """Pods of a may run where those of b have no end; on the other node pods end and start all the time."""
    claims = PoolPreemption(min_share_seconds=seconds)
    nodes = [make_node(name, cpu=4, labels={"node": name}) for name in ("calm", "busy")]
    engine = make_engine(BestFit(), order=FairPools(), relieve=Reclaim(), wait_limit=None)
    world = World(engine, *nodes)
    world.step(*map(PoolSeen, (mine("a", min_share=cores(2), preemption=claims), mine("b"), mine("c"))))
    calm, busy = ({"spec": make_spec(1, node_selector=(("node", name),))} for name in ("calm", "busy"))
    world.add(*pods("b", 4, **calm), *pods("c", 10, **busy))
    begins, last = 20.0 + phase, 10
    while not world.victims() and world.now < begins + seconds + 5.0:
        at = world.now + 0.05
        if world.now < begins <= at:
            world.sleep(begins - world.now)
            world.add(*pods("a", 2, **calm))
        world.sleep(at - world.now)
        world.end(min(name for name in world.placed() if name[0] == "c"))
        world.add(*pods("c", 1, first=last, **busy))
        last += 1
    assert len(world.victims()) == 2
    assert begins + seconds <= world.now <= begins + seconds + 0.2
