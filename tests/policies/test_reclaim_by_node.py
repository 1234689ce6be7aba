"""Minima by kind of node are taken back, on such nodes, and kept by all claims."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import make_node
from eclectus.explain.pod import explain_pod
from eclectus.model.commands import Fault, RecordPool
from eclectus.model.events import PoolSeen
from eclectus.model.objects import Task
from eclectus.model.pool import NodeAmounts, PoolAmounts, PoolPreemption
from gangs import group, key
from pool_worlds import AFTER_60, FAIR_60, cores, held, mine, pods, world_of
from worlds import World


def on(value: str, count: float, key: str = "model") -> PoolAmounts:
    """So many cores on the nodes with this label."""
    return PoolAmounts(by_node=(NodeAmounts(key, value, (("cpu", int(1000 * count)),)),))


def of(value: str) -> dict[str, Any]:
    """Pods that run on such nodes alone."""
    return {"node_selector": (("model", value),)}


def two_kinds(*pools: Any, fast: float = 4, slow: float = 8) -> World:
    """One node of either kind."""
    world = world_of(*pools, nodes=())
    for model, cpu in (("fast", fast), ("slow", slow)):
        world.put_node(make_node(model, cpu=cpu, labels={"model": model}))
    return world


def placed_on(world: World, node: str) -> list[str]:
    return sorted(name for name, where in world.placed().items() if where == node)


def starved(least: float = 2, **b: Any) -> World:
    """Pool b has filled the fast node, the slow one is empty; a has a minimum of fast cores."""
    world = two_kinds(mine("a", min_share=on("fast", least), preemption=AFTER_60), mine("b", **b))
    world.add(*pods("b", 4, **of("fast")))
    return world


def test_a_minimum_of_a_kind_is_taken_back_after_its_time_on_such_nodes() -> None:
    world = starved()
    world.add(*pods("b", 4, first=4, **of("slow")))
    world.add(*pods("a", 3, **of("fast")))
    world.sleep(59.0)
    assert world.victims() == []
    world.sleep(4.0)
    assert len(world.victims()) == 2
    assert set(world.victims()) <= {"b0", "b1", "b2", "b3"}
    assert len(placed_on(world, "slow")) == 4
    world.sleep(3600.0)
    assert (len(world.victims()), held(world, "a")) == (2, 2)


def test_it_is_taken_though_the_pool_holds_more_than_its_share_elsewhere() -> None:
    world = two_kinds(mine("a", min_share=on("fast", 2), preemption=AFTER_60), mine("b"))
    world.add(*pods("a", 8, first=10, **of("slow")), *pods("b", 4, **of("fast")))
    world.add(*pods("a", 2, **of("fast")))
    world.sleep(70.0)
    assert len(world.victims()) == 2


def test_pods_that_may_run_elsewhere_claim_nothing() -> None:
    world = starved()
    world.add(*pods("b", 8, first=4, **of("slow")))
    world.add(*pods("a", 3))
    world.sleep(3600.0)
    assert world.victims() == []


def test_no_more_is_taken_than_pods_ask_for() -> None:
    world = starved()
    world.add(*pods("a", 1, **of("fast")))
    world.sleep(600.0)
    assert len(world.victims()) == 1


def test_without_a_time_nothing_is_taken() -> None:
    world = two_kinds(mine("a", min_share=on("fast", 2)), mine("b"))
    world.add(*pods("b", 4, **of("fast")))
    world.add(*pods("a", 3, **of("fast")))
    world.sleep(3600.0)
    assert world.victims() == []


def test_each_kind_has_a_clock_of_its_own_and_one_of_all_nodes_another() -> None:
    world = two_kinds(
        mine("a", min_share=replace(on("fast", 2), amounts=(("memory", 2**40),)), preemption=AFTER_60),
        mine("b"),
    )
    world.add(*pods("b", 4, **of("fast")))
    world.add(*pods("a", 1, cpu=99))
    world.sleep(100.0)
    world.add(*pods("a", 1, first=1, **of("fast")))
    world.sleep(59.0)
    assert world.victims() == []
    world.sleep(4.0)
    assert len(world.victims()) == 1


@pytest.mark.parametrize(("kept", "victims"), [(4, 0), (3, 1), (2, 2)])
def test_another_pool_keeps_its_own_minimum_of_that_kind(kept: float, victims: int) -> None:
    world = starved(min_share=on("fast", kept))
    world.add(*pods("a", 2, **of("fast")))
    world.sleep(3600.0)
    assert len(world.victims()) == victims


@pytest.mark.parametrize(("kept", "victims"), [(4, 0), (3, 1)])
def test_another_pool_keeps_its_minimum_of_all_nodes(kept: float, victims: int) -> None:
    world = starved(min_share=cores(kept))
    world.add(*pods("a", 2, **of("fast")))
    world.sleep(3600.0)
    assert len(world.victims()) == victims


@pytest.mark.parametrize("preemption", [FAIR_60, AFTER_60])
def test_claims_of_all_nodes_leave_it_to_its_pool_too(preemption: PoolPreemption) -> None:
    """Pool a has nothing, and b holds the fast node: without its minimum there half of that would go."""
    for kept, victims in ((4, 0), (0, 2)):
        world = two_kinds(
            mine("a", min_share=cores(2), preemption=preemption),
            mine("b", min_share=on("fast", kept)),
            slow=0,
        )
        world.add(*pods("b", 4, **of("fast")))
        world.add(*pods("a", 2))
        world.sleep(600.0)
        assert len(world.victims()) == victims


def test_the_minimum_of_a_parent_is_kept_and_claimed_as_well() -> None:
    world = two_kinds(
        mine("all", min_share=on("fast", 2), preemption=AFTER_60), mine("a", parent="all"), mine("b")
    )
    world.add(*pods("b", 4, **of("fast")))
    world.add(*pods("a", 3, **of("fast")))
    world.sleep(600.0)
    assert len(world.victims()) == 2
    world.step(PoolSeen(mine("b", min_share=on("fast", 4), preemption=AFTER_60)))
    world.add(*pods("b", 2, first=20, **of("fast")))
    world.sleep(600.0)
    assert len(world.victims()) == 2


def test_a_gang_takes_it_back_as_a_whole() -> None:
    world = starved(least=3)
    world.step(group("g", 3))
    world.add(*pods("a", 3, gang=key("g"), **of("fast")))
    world.sleep(70.0)
    assert (len(world.victims()), held(world, "a")) == (3, 3)


def test_a_gang_of_which_a_pod_may_run_elsewhere_takes_nothing_for_that() -> None:
    world = starved(least=3)
    world.add(*pods("b", 8, first=10, **of("slow")))
    world.step(group("g", 3))
    world.add(*pods("a", 2, gang=key("g"), **of("fast")), *pods("a", 1, first=2, gang=key("g")))
    world.sleep(600.0)
    assert world.victims() == []


def test_a_node_that_becomes_one_of_the_kind_counts_at_once() -> None:
    world = starved()
    world.add(*pods("a", 2, **of("fast")))
    world.sleep(30.0)
    world.put_node(make_node("slow", cpu=8, labels={"model": "fast"}))
    world.sleep(600.0)
    assert (world.victims(), held(world, "a")) == ([], 2)


def test_since_when_it_is_lacking_is_written_and_said() -> None:
    world = starved()
    world.add(*pods("a", 1, **of("fast")))
    world.sleep(30.0)
    since = [
        each.record.below_min_since
        for each in world.faults
        if isinstance(each, RecordPool) and each.name == "a"
    ]
    assert since[-1] == pytest.approx(0.0, abs=1.0)
    found = explain_pod(world.engine, "default", "a0", world.now).reclaim
    assert found is not None
    assert found.state == "tooSoon"
    assert "pool a has had less than its minimum on nodes with model=fast for 30 s" in found.reason


def test_why_nobody_goes_is_said() -> None:
    world = starved(min_share=on("fast", 4))
    world.add(*pods("a", 1, **of("fast")))
    world.sleep(100.0)
    found = explain_pod(world.engine, "default", "a0", world.now).reclaim
    assert found is not None
    assert found.reason.startswith("pool a may take its minimum on nodes with model=fast back, but")
    assert "4 pods that their pools need for their minimum" in found.reason


def test_controllers_that_create_victims_again_do_not_keep_it_going() -> None:
    both = PoolPreemption(min_share_seconds=60.0, fair_share_seconds=60.0)
    world = two_kinds(
        mine("a", min_share=on("fast", 2), preemption=both),
        mine("b", min_share=on("fast", 2), preemption=both),
    )
    created = pods("b", 4, **of("fast"))
    world.add(*created)
    world.add(*pods("a", 4, **of("fast")))
    for at in range(60):
        known = len(world.victims())
        world.sleep(10.0)
        again = [each for each in created if each.name in world.victims()[known:]]
        world.add(*(replace(each, uid=f"{each.uid}-{at}", created=world.now) for each in again))
    assert (len(world.victims()), held(world, "a"), held(world, "b")) == (2, 2, 2)


PODS = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from(["fast", "slow", ""]), st.sampled_from([0.5, 1.0, 2.0])
    ),
    min_size=4,
    max_size=16,
)
LEAST = st.tuples(*[st.sampled_from([0, 1, 2])] * 3)


@settings(max_examples=60, deadline=None)
@given(PODS, PODS, LEAST, LEAST)
def test_no_claim_breaks_a_minimum_of_a_kind_and_all_end(
    first: list[tuple[str, str, float]],
    later: list[tuple[str, str, float]],
    fast: tuple[int, ...],
    slow: tuple[int, ...],
) -> None:
    """Three pools with minima of both kinds; pods of `first` come before those of `later`."""
    rules = PoolPreemption(min_share_seconds=60.0, fair_share_seconds=90.0)
    pools = []
    for at, name in enumerate("abc"):
        kinds = [(kind, each[at]) for kind, each in (("fast", fast), ("slow", slow)) if each[at]]
        by_node = tuple(NodeAmounts("model", kind, (("cpu", 1000 * least),)) for kind, least in kinds)
        pools.append(mine(name, min_share=PoolAmounts(by_node=by_node), preemption=rules))
    world = two_kinds(*pools, fast=4, slow=4)
    serial = 0
    for drawn in (first, later):
        for name, kind, cpu in drawn:
            world.add(*pods(name, 1, cpu, first=serial, **(of(kind) if kind else {})))
            serial += 1
        world.sleep(5.0)
    before: dict[tuple[str, str], float] = {}
    while world.now < 900.0:
        found = held_by_kind(world)
        for at, name in enumerate("abc"):
            for kind, least in (("fast", fast[at]), ("slow", slow[at])):
                was, now = before.get((name, kind), 0.0), found.get((name, kind), 0.0)
                assert now >= min(was, least), f"{name} falls below its minimum on {kind}"
        before = found
        world.sleep(1.0)
    victims = len(world.victims())
    world.sleep(3600.0)
    assert len(world.victims()) == victims, "it ends"
    assert not [each for each in world.faults if isinstance(each, Fault)]


def held_by_kind(world: World) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for name, node in world.placed().items():
        at = (name[0], node)
        found[at] = found.get(at, 0.0) + dict(world.tasks[name].spec.requests)["cpu"] / 1000
    return found


def test_what_waits_for_a_kind_is_counted_whatever_becomes_of_the_pods() -> None:
    world = starved()
    quotas = world.engine._state.pools.node_quotas
    kind = on("fast", 2).by_node[0]
    world.add(*pods("a", 3, **of("fast")))
    assert quotas.lacking("a", kind) == {"cpu": 2000}
    world.delete("a0")
    world.delete("a1")
    assert quotas.lacking("a", kind) == {"cpu": 1000}
    world.put(replace(world.tasks["a2"], gates=("gate",)))
    assert quotas.lacking("a", kind) == {}
    world.put(replace(world.tasks["a2"], gates=()))
    assert quotas.lacking("a", kind) == {"cpu": 1000}
    world.delete("b0")
    world.settle()
    assert held(world, "a") == 1
    assert quotas.lacking("a", kind) == {}
    assert not quotas._asked


def test_pods_of_other_pools_that_ask_for_the_kind_are_not_its_own() -> None:
    world = starved()
    tasks: list[Task] = pods("b", 2, first=30, **of("fast"))
    world.add(*tasks)
    world.sleep(600.0)
    assert world.victims() == []
