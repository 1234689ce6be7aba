"""Gangs as victims of reclaim: as a whole or not, but for pods beyond the quorum."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eclectus.explain.pod import explain_pod
from eclectus.model.events import BudgetSeen, GangSeen, PoolSeen
from eclectus.model.objects import Budget, Gang, Requirement, Task
from eclectus.model.pool import PoolPreemption
from gangs import group, key, no_group
from pool_worlds import AFTER_60, FAIR_60, cores, held, mine, pods, world_of
from worlds import World

LABEL = (("app", "x"),)


def gang(pool: str, count: int, name: str = "g", **fields: Any) -> list[Task]:
    """Pods of a PodGroup in a pool."""
    return pods(pool, count, **{"gang": key(name), "labels": LABEL, **fields})


def world_with(quorum: int, *, nodes: tuple[float, ...] = (4,), least: float = 1, **b: Any) -> World:
    """Pool a claims a minimum after 60 s, and a PodGroup of this quorum exists."""
    world = world_of(mine("a", min_share=cores(least), preemption=AFTER_60), mine("b", **b), nodes=nodes)
    world.step(group("g", quorum))
    return world


def test_another_pod_goes_rather_than_a_gang_though_it_is_older() -> None:
    world = world_with(3)
    world.add(*pods("b", 1, first=9))
    world.sleep(10.0)
    world.add(*gang("b", 3))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert world.victims() == ["b9"]


def test_a_gang_goes_as_a_whole_where_nothing_else_makes_room() -> None:
    world = world_with(4, nodes=(2, 2))
    world.add(*gang("b", 4))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert set(world.victims()) == {"b0", "b1", "b2", "b3"}
    assert held(world, "a") == 1


def test_pods_beyond_the_quorum_go_alone() -> None:
    world = world_with(2, least=2)
    world.add(*gang("b", 4))
    world.add(*pods("a", 2))
    world.sleep(600.0)
    assert len(world.victims()) == 2
    assert held(world, "b") == 2


def test_one_more_than_these_and_all_go() -> None:
    world = world_with(2, least=3)
    world.add(*gang("b", 4))
    world.add(*pods("a", 1, cpu=3))
    world.sleep(600.0)
    assert len(world.victims()) == 4


def test_no_part_is_given_back_of_a_gang_that_goes() -> None:
    """Where the gang goes the claimant would fit beside its third pod, which goes with it all the same."""
    world = world_with(2, least=2)
    world.add(*gang("b", 2, cpu=1.5), *gang("b", 1, first=2, cpu=0.5))
    world.sleep(10.0)
    world.add(*pods("a", 1, cpu=2))
    world.sleep(70.0)
    assert set(world.victims()) in ({"b0", "b1", "b2"}, {"b0"}, {"b1"})
    assert held(world, "b") in (0, 2)


def test_a_gang_whose_pod_group_is_gone_goes_as_a_whole() -> None:
    world = world_with(2)
    world.add(*gang("b", 4))
    world.step(no_group("g"))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert len(world.victims()) == 4


def test_a_gang_with_a_pod_that_is_too_young_stays_until_that_is_not() -> None:
    """The young one is on another node, and beyond no quorum."""
    world = world_with(2, nodes=(2, 1), preemption=PoolPreemption(min_runtime_seconds=300.0))
    world.add(*gang("b", 2, cpu=1))
    world.sleep(200.0)
    world.step(group("g", 3))
    world.add(*gang("b", 1, first=2, cpu=1))
    world.add(*pods("a", 1))
    world.sleep(110.0)
    assert world.victims() == []
    found = explain_pod(world.engine, "default", "a0", world.now).reclaim
    assert found is not None
    assert "younger than minRuntimeSeconds" in found.reason
    world.sleep(250.0)
    assert len(world.victims()) == 3


def budget(world: World, allowed: int) -> None:
    world.step(BudgetSeen(Budget("default", "b", (Requirement("app", "In", ("x",)),), allowed)))


def test_a_budget_that_does_not_bear_all_of_a_gang_keeps_it() -> None:
    world = world_with(4)
    world.add(*gang("b", 4))
    world.add(*pods("a", 1))
    budget(world, 3)
    world.sleep(600.0)
    assert world.victims() == []
    budget(world, 4)
    world.sleep(60.0)
    assert len(world.victims()) == 4


def test_a_gang_that_its_pool_needs_for_its_minimum_stays() -> None:
    """volcano#4947 with pods: one of four goes from a pool with a minimum of three, four never go."""
    world = world_with(4, min_share=cores(3))
    world.add(*gang("b", 4))
    world.add(*pods("a", 1))
    world.sleep(3600.0)
    assert world.victims() == []


def test_a_gang_whose_going_is_unfair_stays() -> None:
    """Pool a claims its share, of which it has 1 of 3 cores. One pod would do, of b nothing would be left."""
    for quorum, victims in ((5, 0), (3, 2)):
        world = world_of(mine("a", preemption=FAIR_60), mine("b"), nodes=(6,))
        world.step(group("g", quorum))
        world.add(*gang("b", 5), *pods("a", 1))
        world.add(*pods("a", 6, first=1))
        world.sleep(600.0)
        assert len(world.victims()) == victims


def test_a_gang_goes_for_a_share_where_its_pool_keeps_its_own() -> None:
    world = world_of(mine("a", preemption=FAIR_60), mine("b"), nodes=(6,))
    world.step(group("g", 2), group("h", 3))
    world.add(*gang("b", 2), *gang("b", 3, name="h", first=2), *pods("a", 1))
    world.add(*pods("a", 6, first=1))
    world.sleep(600.0)
    assert set(world.victims()) == {"b0", "b1"}


def test_a_gang_that_may_not_go_does_not_end_the_search() -> None:
    """volcano#3673: it is the newest on the node; the pods behind it are looked at all the same."""
    world = world_with(3, nodes=(4,))
    world.add(*pods("b", 1, first=9))
    world.sleep(10.0)
    world.add(*gang("b", 3))
    budget(world, 0)
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert world.victims() == ["b9"]


def test_nobody_is_evicted_on_nodes_that_are_not_used() -> None:
    """volcano#5994: of three gangs on three nodes one goes, and no pod of another."""
    world = world_with(2, nodes=(2, 2, 2))
    for at in range(3):
        world.step(group(f"g{at}", 2))
        world.add(*gang("b", 2, name=f"g{at}", first=2 * at))
    world.add(*pods("a", 1))
    world.sleep(600.0)
    assert len(world.victims()) == 2
    assert len({world.tasks.get(name) for name in world.victims()}) == 1


def test_least_work_is_lost() -> None:
    """Of two gangs of two the younger one goes."""
    world = world_with(2, nodes=(2, 2))
    world.step(group("old", 2), group("new", 2))
    world.add(*gang("b", 2, name="old"))
    world.sleep(30.0)
    world.add(*gang("b", 2, name="new", first=2))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert set(world.victims()) == {"b2", "b3"}


def test_pods_of_a_group_that_does_not_start_together_go_alone() -> None:
    world = world_with(1)
    world.add(*gang("b", 4))
    world.add(*pods("a", 1))
    world.sleep(70.0)
    assert len(world.victims()) == 1


def test_controllers_that_create_gangs_again_do_not_keep_it_going() -> None:
    world = world_of(
        mine("a", min_share=cores(2), preemption=AFTER_60),
        mine("b", preemption=PoolPreemption(min_share_seconds=60.0, fair_share_seconds=60.0)),
        nodes=(4, 4),
    )
    world.step(group("g", 4), group("h", 4))
    created = [*gang("b", 4), *gang("b", 4, name="h", first=4)]
    world.add(*created)
    world.add(*pods("a", 4))
    for at in range(60):
        known = len(world.victims())
        world.sleep(10.0)
        again = [each for each in created if each.name in world.victims()[known:]]
        world.add(*(replace(each, uid=f"{each.uid}-{at}", created=world.now) for each in again))
    assert len(world.victims()) == 4
    assert held(world, "a") == 4


GANGS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 5), st.sampled_from([0.5, 1.0, 2.0])), min_size=1, max_size=4
)


@settings(max_examples=120, deadline=None)
@given(GANGS, st.integers(1, 5), st.sampled_from([0.5, 1.0, 2.0]), st.integers(0, 4), st.integers(0, 6))
@example([(2, 3, 1.0), (3, 5, 1.0)], 2, 2.0, 0, 2)  # a pod of the second gang starts where the first one was
def test_a_quorum_stays_or_nothing(
    drawn: list[tuple[int, int, float]], wanted: int, cpu: float, least: int, allowed: int
) -> None:
    """Gangs of (quorum, pods, cores of each) in pool b; the claimant wants so many pods of so many cores."""
    rules = PoolPreemption(min_share_seconds=60.0, fair_share_seconds=90.0)
    world = world_of(
        mine("a", min_share=cores(3), preemption=rules), mine("b", min_share=cores(least)), nodes=(4, 3)
    )
    budget(world, allowed)
    serial = 0
    for at, (quorum, count, each) in enumerate(drawn):
        world.step(GangSeen(Gang(key(f"g{at}"), min(quorum, count))))
        world.add(*gang("b", count, name=f"g{at}", first=serial, cpu=each, labels=LABEL if at % 2 else ()))
        serial += count
    world.step(PoolSeen(mine("c")))
    world.add(*pods("a", wanted, cpu=cpu))
    started = {each.name: each for each in world.tasks.values() if each.node and each.gang}
    world.sleep(400.0)
    gone = set(world.victims())
    for at, (quorum, count, _) in enumerate(drawn):
        of_gang = {name for name, task in started.items() if task.gang == key(f"g{at}")}
        # With those that have started since, in room that another gang has left.
        left = {each.name for each in world.tasks.values() if each.node and each.gang == key(f"g{at}")} - gone
        assert not of_gang & gone or not left or len(left) >= min(quorum, count), (at, of_gang, gone)
    assert sum("b" in name and started[name].labels == LABEL for name in gone) <= allowed
    if gone:
        assert held(world, "a"), "somebody has started for it"
