"""Why nobody could be evicted for a pod of a starved pool, in words."""

from __future__ import annotations

import pytest

from builders import make_engine, make_node, make_task
from eclectus.cli.explain.explained_text import pod_lines
from eclectus.explain.pod import explain_pod
from eclectus.model.events import BudgetSeen, PoolSeen
from eclectus.model.explanation import Reclaim
from eclectus.model.objects import Budget, Requirement
from eclectus.model.pool import NO_PREEMPTION, Pool, PoolPreemption
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from pool_worlds import AFTER_60, FAIR_60, cores, mine, pods, world_of
from worlds import World

STARVED = mine("a", min_share=cores(2), preemption=AFTER_60)


def reclaim_of(world: World, name: str = "a0") -> Reclaim:
    """What is said of this pod."""
    found = explain_pod(world.engine, "default", name, world.now).reclaim
    assert found is not None
    return found


def full_world(*given: Pool, **fields: object) -> World:
    """Pool b holds all of 8 cores; two pods of a wait for 70 s."""
    world = world_of(*given)
    world.add(*pods("b", 8, **fields))
    world.add(*pods("a", 2))
    world.sleep(70.0)
    return world


def test_a_pool_that_states_no_time_takes_nothing_back() -> None:
    found = reclaim_of(full_world(mine("a", min_share=cores(2)), mine("b")))
    assert found.state == "noTime"
    assert "pool a has had less than its minimum for 70 s" in found.reason
    assert "preemption.minShareSeconds of the Pool is not set" in found.reason


def test_a_pool_takes_nothing_back_before_its_time() -> None:
    world = world_of(STARVED, mine("b"))
    world.add(*pods("b", 8))
    world.add(*pods("a", 2))
    world.sleep(20.0)
    found = reclaim_of(world)
    assert (found.state, found.pool, found.claim) == ("tooSoon", "a", "minimum")
    assert found.reason.endswith("it takes that back after 60 s")


def test_a_pool_that_has_its_own_takes_nothing_back() -> None:
    world = world_of(mine("a", preemption=FAIR_60), mine("b"))
    world.add(*pods("a", 3, first=1), *pods("b", 5))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    found = reclaim_of(world)
    assert (found.state, found.reason) == ("lacksNothing", "pool a and those above it have what is theirs")


def test_pods_that_are_too_young_are_named_with_the_time_that_is_left() -> None:
    spared = PoolPreemption(min_runtime_seconds=300.0)
    found = reclaim_of(full_world(STARVED, mine("b", preemption=spared)))
    assert (found.state, found.examined) == ("notHelpful", 1)
    assert "may not go: 8 pods younger than minRuntimeSeconds of their pools (the first for 2" in found.reason


def test_budgets_are_named() -> None:
    world = world_of(STARVED, mine("b"))
    world.step(BudgetSeen(Budget("default", "b", (Requirement("app", "In", ("x",)),), 0)))
    world.add(*pods("b", 8, labels=(("app", "x"),)))
    world.add(*pods("a", 2))
    world.sleep(70.0)
    assert "8 pods protected by disruption budgets" in reclaim_of(world).reason


def test_a_pool_that_allows_nothing_to_be_taken_is_named() -> None:
    found = reclaim_of(full_world(STARVED, mine("b", preemption=PoolPreemption(allow_from=False))))
    assert found.state == "noneAbove"
    assert "of pools that hold more than their share, b may give nothing (allowFrom: false)" in found.reason


def test_minima_of_others_are_named() -> None:
    """volcano#4947: the one pod of b would leave it without its minimum."""
    world = world_of(mine("a", min_share=cores(5), preemption=AFTER_60), mine("b", min_share=cores(3)))
    world.add(*pods("b", 1, cpu=4), *pods("a", 1, first=9))
    world.add(*pods("a", 1, cpu=4))
    world.sleep(70.0)
    assert "1 pod that their pools need for their minimum" in reclaim_of(world).reason


def test_no_pool_above_its_share_is_said() -> None:
    """It has 4 of its 5 cores, and its next pod needs two, of which one is free."""
    world = world_of(mine("a", min_share=cores(5), preemption=AFTER_60), mine("b"))
    world.add(*pods("b", 3), *pods("a", 4, first=9))
    world.add(*pods("a", 1, cpu=2))
    world.sleep(70.0)
    found = reclaim_of(world)
    assert (found.state, found.claim) == ("notHelpful", "minimum")
    assert found.reason.endswith(", 3 pods whose pools hold no more than their share")


def test_a_pod_that_fits_no_node_evicts_nobody_and_says_so() -> None:
    world = world_of(STARVED, mine("b"))
    world.add(*pods("b", 8))
    world.add(*pods("a", 2, node_selector=(("kubernetes.io/hostname", "elsewhere"),)))
    world.sleep(70.0)
    assert reclaim_of(world).reason.endswith("no node could run this pod when empty")


def test_pods_on_nodes_that_it_cannot_use_are_no_victims_and_that_is_said() -> None:
    """Pool b has more than its share, on a node that no pod of a may use."""
    world = world_of(STARVED, mine("b"), nodes=(1, 4))
    own = {"gpu": "a100"}
    world.put_node(make_node("n0", cpu=1, labels=own))
    world.add(*pods("a", 1, node_selector=tuple(own.items())), *pods("b", 4))
    world.add(*pods("a", 1, first=1, node_selector=tuple(own.items())))
    world.sleep(70.0)
    assert world.victims() == []
    found, words = reclaim_of(world, "a1"), "on 1 of 1 nodes no pod is of a pool that may give"
    assert (found.state, found.reason) == (
        "notHelpful",
        f"pool a may take its minimum back, but {words}",
    )


def test_room_that_is_given_is_waited_for() -> None:
    world = world_of(STARVED, mine("b"))
    world.terminates_at_once = False
    world.add(*pods("b", 8))
    world.add(*pods("a", 2))
    world.sleep(70.0)
    found = reclaim_of(world)
    assert found.state == "nominated"
    assert found.reason == "room is held for it on node n0 until 2 pods on their way out there have ended"


def test_a_share_that_may_be_taken_back_is_said_with_the_victims() -> None:
    """Asked between the moment and the step that acts."""
    world = world_of(mine("a", preemption=FAIR_60), mine("b"))
    world.add(*pods("b", 8))
    world.add(*pods("a", 2))
    world.sleep(2.0)
    world.engine._state.starvation._claiming["a"] = None
    found = reclaim_of(world)
    assert (found.state, found.node, found.victims) == ("possible", "n0", 1)
    assert found.reason == "pool a may take its share back: 1 pod on node n0 would go"


@pytest.mark.parametrize("preemption", [NO_PREEMPTION, AFTER_60])
def test_a_profile_without_reclaim_says_so(preemption: PoolPreemption) -> None:
    world = World(make_engine(BestFit(), order=FairPools(), wait_limit=None), make_node(cpu=2))
    world.step(PoolSeen(mine("a", min_share=cores(1), preemption=preemption)), PoolSeen(mine("b")))
    world.add(*pods("b", 2))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert reclaim_of(world).state == "profileReclaimsNothing"


def test_a_pod_in_no_pool_has_no_such_part() -> None:
    world = World(make_engine(BestFit(), wait_limit=None), make_node(cpu=2))
    world.add(make_task("a0", 3))
    assert explain_pod(world.engine, "default", "a0", world.now).reclaim is None


def test_it_is_a_line_below_preemption() -> None:
    world = full_world(STARVED, mine("b", preemption=PoolPreemption(allow_from=False)))
    lines = list(pod_lines(explain_pod(world.engine, "default", "a0", world.now)))
    (at,) = (at for at, line in enumerate(lines) if line.startswith("Reclaim: pool a may take its minimum"))
    assert lines[at - 1].startswith("Preemption: ")


def test_to_ask_changes_nothing() -> None:
    worlds = [
        full_world(STARVED, mine("b", preemption=PoolPreemption(min_runtime_seconds=100))) for _ in "12"
    ]
    for _ in range(20):
        reclaim_of(worlds[0])
    for world in worlds:
        world.sleep(60.0)
    assert worlds[0].victims() == worlds[1].victims() != []
