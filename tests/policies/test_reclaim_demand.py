"""Only pods that are refused for want of room are demand: others starve no pool, and nobody goes for them."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.explain.pod import explain_pod
from eclectus.model.events import PoolSeen
from eclectus.model.objects import Input
from eclectus.model.pool import NodeAmounts, PoolAmounts, PoolPreemption
from eclectus.policies.hold.delay import Delay
from eclectus.policies.order.pools import FairPools
from eclectus.policies.place.fit import BestFit
from eclectus.policies.relieve.reclaim import Reclaim
from eclectus.policies.rosella import Rosella
from gangs import group, key
from pool_worlds import AFTER_60, cores, mine, pods, world_of
from worlds import World

ON_GPU = {"node_selector": (("gpu", "a100"),)}


def state_of(world: World) -> Any:
    return world.engine._state


def demand(world: World, path: str) -> int:
    """Pods."""
    return int(state_of(world).pools.demand_of(path).get("pods", 0))


def is_starved(world: World, path: str) -> bool:
    starvation = state_of(world).starvation
    return (starvation.below_min_since(path), starvation.below_share_since(path)) != (None, None)


def crowded(count: int = 2, **a: Any) -> World:
    """Pool b holds all of eight cores, and pods of a, which has a minimum of two, wait."""
    world = world_of(mine("a", min_share=cores(2), preemption=AFTER_60, **a.pop("pool", {})), mine("b"))
    world.add(*pods("b", 8))
    world.add(*pods("a", count, **a))
    world.sleep(100.0)
    return world


def give_label(world: World) -> None:
    """The node is one on which all may run, and has no room."""
    world.put_node(make_node("n0", cpu=8, labels={"gpu": "a100"}))


# -- pods that fit no node ever ----------------------------------------------------------------------


def test_pods_that_fit_no_node_ever_are_no_demand() -> None:
    world = crowded(**ON_GPU)
    assert (demand(world, "a"), is_starved(world, "a"), world.victims()) == (0, False, [])
    assert state_of(world).starvation.above_share == set(), "b has what nobody else can use"
    assert state_of(world).pools.usage.waiting("a")["pods"] == 2
    world.add(*pods("a", 1, first=2, **ON_GPU))
    assert demand(world, "a") == 0, "nor is one that comes later"


def test_they_are_demand_once_a_node_could_run_them() -> None:
    world = crowded(**ON_GPU)
    give_label(world)
    world.sleep(59.0)
    assert (demand(world, "a"), is_starved(world, "a"), world.victims()) == (2, True, [])
    world.sleep(2.0)
    assert len(world.victims()) == 2


def test_they_are_no_demand_again_when_no_node_could() -> None:
    world = crowded(**ON_GPU)
    give_label(world)
    world.put_node(make_node("n0", cpu=8))
    world.sleep(1.0)
    assert (demand(world, "a"), is_starved(world, "a")) == (0, False)


def test_one_of_them_that_is_changed_is_counted_as_it_is_now() -> None:
    world = crowded(**ON_GPU)
    world.put(replace(world.tasks["a0"], labels=(("app", "x"),)))
    assert demand(world, "a") == 0
    world.put(replace(world.tasks["a0"], spec=make_task().spec))
    assert demand(world, "a") == 1
    world.put(replace(world.tasks["a0"], spec=world.tasks["a1"].spec))
    assert demand(world, "a") == 0
    world.put(replace(world.tasks["a0"], gates=("gate",)))
    world.put(replace(world.tasks["a0"], gates=()))
    world.delete("a1")
    assert (demand(world, "a"), state_of(world).pools._unplaceable_pods.keys()) == (0, {"uid-a0"})


def test_pods_that_come_into_a_pool_later_are_counted_likewise() -> None:
    world = World(make_engine(Rosella(), order=FairPools(), wait_limit=None), make_node(cpu=1))
    world.add(*pods("a", 2, **ON_GPU))
    world.step(PoolSeen(mine("a")))
    world.settle()
    assert state_of(world).pools.usage.waiting("a")["pods"] == 2
    assert demand(world, "a") == 0


def test_a_gang_of_which_too_few_fit_any_node_is_no_demand() -> None:
    world = world_of(mine("a", min_share=cores(2), preemption=AFTER_60), mine("b"))
    world.step(group("g", 2))
    world.add(*pods("b", 8))
    world.add(*pods("a", 2, gang=key("g"), **ON_GPU))
    world.sleep(100.0)
    assert (demand(world, "a"), is_starved(world, "a"), world.victims()) == (0, False, [])
    give_label(world)
    world.sleep(70.0)
    assert len(world.victims()) == 2


def test_a_gang_that_is_disbanded_leaves_pods_that_count_for_themselves() -> None:
    world = world_of(mine("a"), mine("b"))
    world.step(group("g", 2))
    world.add(*pods("b", 8))
    world.add(*pods("a", 1, gang=key("g"), **ON_GPU), *pods("a", 1, first=1, gang=key("g"), cpu=9))
    world.sleep(10.0)
    assert demand(world, "a") == 0
    world.put_node(make_node("n0", cpu=9))
    world.step(group("g", 1))
    world.sleep(10.0)
    assert (demand(world, "a"), world.node_of("a0")) == (1, ""), "the one for which there is a node"


def test_of_such_a_pod_it_is_said_that_its_pools_claim_nothing_for_it() -> None:
    world = crowded(**ON_GPU)
    found = explain_pod(world.engine, "default", "a0", world.now).reclaim
    assert found is not None
    assert (found.state, found.claim) == ("noneAbove", "")
    assert found.reason.startswith("its pools claim nothing for it")


# -- limits ------------------------------------------------------------------------------------------


def test_a_suspended_pool_starves_not_and_takes_nothing_back() -> None:
    world = crowded(pool={"suspended": True})
    assert (demand(world, "a"), is_starved(world, "a"), world.victims()) == (0, False, [])
    assert state_of(world).starvation.above_share == set()
    world.step(PoolSeen(mine("a", min_share=cores(2), preemption=AFTER_60)))
    world.sleep(59.0)
    assert world.victims() == []
    world.sleep(2.0)
    assert len(world.victims()) == 2


def test_a_pool_that_runs_as_many_jobs_as_it_may_starves_not() -> None:
    world = world_of(
        mine("a", min_share=cores(4), preemption=AFTER_60, running_jobs_most=1), mine("b"), nodes=(9,)
    )
    world.add(*pods("a", 1, job="first"), *pods("b", 8, first=1))
    world.add(*pods("a", 3, first=1, job="second"))
    world.sleep(300.0)
    assert (demand(world, "a"), is_starved(world, "a"), world.victims()) == (1, False, [])
    world.add(*pods("a", 2, first=4, job="first"))
    world.sleep(61.0)
    assert (demand(world, "a"), len(world.victims())) == (3, 2), "for the job that runs"


def test_a_minimum_by_node_is_not_lacked_by_a_suspended_pool_nor_for_pods_of_one_below() -> None:
    least = PoolAmounts(by_node=(NodeAmounts("gpu", "a100", (("cpu", 2000),)),))
    for above, below in (({"suspended": True}, {}), ({}, {"suspended": True})):
        top = mine("top", min_share=least, preemption=AFTER_60, **above)
        world = world_of(top, mine("a", parent="top", **below), mine("b"))
        give_label(world)
        world.add(*pods("b", 8))
        world.add(*pods("a", 2, **ON_GPU))
        world.sleep(100.0)
        assert (is_starved(world, "top"), world.victims()) == (False, [])
        world.step(PoolSeen(mine("top", min_share=least, preemption=AFTER_60)))
        world.step(PoolSeen(mine("a", parent="top")))
        world.sleep(61.0)
        assert len(world.victims()) == 2


# -- pods that a policy defers ---------------------------------------------------------------------------


def test_a_pod_that_rosella_defers_evicts_nobody_and_starves_no_pool() -> None:
    """It waits for the fast node, which pool b holds: on the slow one it would run for much longer."""
    learn = ExactSpeeds({"fast": 0.1, "slow": 0.001})
    engine = make_engine(Rosella(theta=6.0), learn, order=FairPools(), relieve=Reclaim(), wait_limit=None)
    world = World(engine, make_node("fast", cpu=1), make_node("slow", cpu=1, labels={"kind": "slow"}))
    after_5 = PoolPreemption(min_share_seconds=5.0)
    world.step(PoolSeen(mine("a", min_share=cores(1), preemption=after_5)), PoolSeen(mine("b")))
    world.add(*pods("b", 1))
    world.add(*pods("a", 1))
    world.sleep(100.0)
    assert (world.placed(), world.victims()) == ({"b0": "fast"}, [])
    assert not is_starved(world, "a")
    world.add(make_task("system", priority=2_000_001_000, node_selector=(("kind", "slow"),)))
    assert world.node_of("system") == "slow"
    world.sleep(4.0)
    assert (is_starved(world, "a"), world.victims()) == (True, []), "now it is refused for want of room"
    world.sleep(2.0)
    assert world.victims() == ["b0"]


def test_pods_that_wait_for_their_data_beside_room_starve_no_pool() -> None:
    hold = Delay(node_wait=300)
    engine = make_engine(BestFit(), order=FairPools(), relieve=Reclaim(), hold=hold, wait_limit=None)
    world = World(engine, make_node("data", cpu=1), make_node("other", cpu=1))
    after_5 = PoolPreemption(min_share_seconds=5.0)
    world.step(PoolSeen(mine("a", min_share=cores(1), preemption=after_5)), PoolSeen(mine("b")))
    world.add(*pods("b", 1, inputs=(Input("set", 100, ("data",)),)))
    world.add(*pods("a", 1, inputs=(Input("set", 100, ("data",)),)))
    world.sleep(100.0)
    assert (world.placed(), world.victims()) == ({"b0": "data"}, [])
    assert not is_starved(world, "a")
    assert state_of(world).pools.usage.waiting("a")["pods"] == 1
