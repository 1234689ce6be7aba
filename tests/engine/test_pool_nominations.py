"""Room that is held for pods of a pool, when its limits become others before the room is free."""

from __future__ import annotations

from msgspec.structs import replace

from builders import amounts, make_node
from eclectus.model.events import NodeSeen, PoolSeen
from eclectus.model.pool import Pool, PoolAmounts
from pool_worlds import AFTER_60, cores, mine, pods, world_of
from worlds import World

STARVED = mine("a", min_share=cores(3), preemption=AFTER_60)


def nominated_world(*more: Pool) -> World:
    """Room on n0 is held for three pods of a, whose victims are on their way out."""
    world = world_of(STARVED, mine("b"), *more)
    world.terminates_at_once = False
    world.add(*pods("b", 8))
    world.add(*pods("a", 3))
    world.sleep(70.0)
    assert len(world.victims()) == 3
    return world


def end_of_victims(world: World) -> set[str]:
    """The pods of a that are bound once the victims are gone."""
    for name in world.victims():
        world.delete(name)
    world.sleep(5.0)
    return {name for name in world.placed() if name.startswith("a")}


def withdrawn(world: World) -> list[str]:
    return [each.name for each in world.nominations if not each.node]


def test_a_lowered_maximum_takes_back_the_nominations_that_would_exceed_it() -> None:
    world = nominated_world()
    world.step(PoolSeen(replace(STARVED, max_share=cores(1))))
    assert withdrawn(world) == ["a2", "a1"], "the youngest first"
    assert end_of_victims(world) == {"a0"}


def test_so_does_one_of_a_pool_above() -> None:
    top = Pool("top")
    world = world_of(top, replace(STARVED, parent="top"), mine("b"))
    world.terminates_at_once = False
    world.add(*pods("b", 8))
    world.add(*pods("a", 3))
    world.sleep(70.0)
    world.step(PoolSeen(replace(top, max_share=cores(2))))
    assert withdrawn(world) == ["a2"]
    assert end_of_victims(world) == {"a0", "a1"}


def test_a_pool_that_is_suspended_is_held_no_room() -> None:
    world = nominated_world()
    world.step(PoolSeen(replace(STARVED, suspended=True)))
    assert set(withdrawn(world)) == {"a0", "a1", "a2"}
    assert end_of_victims(world) == set()


def test_jobs_that_a_lowered_limit_does_not_let_start_are_held_no_room() -> None:
    world = nominated_world()
    world.step(PoolSeen(replace(STARVED, running_jobs_most=2)))
    assert withdrawn(world) == ["a2"]
    assert end_of_victims(world) == {"a0", "a1"}


def test_a_job_of_which_a_pod_runs_keeps_the_room_of_its_others() -> None:
    world = world_of(STARVED, mine("b"))
    world.terminates_at_once = False
    world.add(*pods("b", 7), *pods("a", 1, job="one"))
    world.add(*pods("a", 2, first=1, job="one"))
    world.sleep(70.0)
    world.step(PoolSeen(replace(STARVED, running_jobs_most=1)))
    assert withdrawn(world) == []
    assert end_of_victims(world) == {"a0", "a1", "a2"}


def test_so_does_a_percentage_of_a_cluster_that_has_become_smaller() -> None:
    world = world_of(replace(STARVED, max_share=PoolAmounts((), 50.0)), mine("b"))
    world.terminates_at_once = False
    world.add(*pods("b", 8))
    world.add(*pods("a", 3))
    world.sleep(70.0)
    world.step(NodeSeen(make_node("n0", cpu=4)))
    assert withdrawn(world) == ["a2"]


def test_a_pod_that_is_resized_leaves_no_room_for_one_that_is_nominated() -> None:
    world = world_of(replace(STARVED, max_share=cores(2)), mine("b"))
    world.terminates_at_once = False
    world.add(*pods("b", 1, cpu=5), *pods("a", 1))
    world.sleep(1.0)
    world.add(*pods("b", 1, cpu=2, first=1))
    world.add(*pods("a", 1, first=1))
    world.sleep(70.0)
    (victim,) = world.victims()
    world.put(replace(world.tasks["a0"], held=amounts(cpu=2)))
    world.delete(victim)
    world.sleep(5.0)
    assert world.node_of("a1") == ""


def test_room_within_the_limit_stays_held() -> None:
    world = nominated_world()
    world.step(PoolSeen(replace(STARVED, max_share=cores(3))))
    assert withdrawn(world) == []
    assert end_of_victims(world) == {"a0", "a1", "a2"}
