"""Background load, which no pod has requested, lengthens the wait for a node and changes nothing else."""

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.model.events import LoadSeen
from eclectus.policies.rosella import Rosella
from worlds import World, small_world


def two_nodes(**settings: object) -> World:
    """One core each; both run a pod and have one in their queue."""
    policy = Rosella(replan=False, **settings)  # type: ignore[arg-type]
    world = small_world(make_engine(policy, ExactSpeeds({})), nodes=2, cpu=1)
    world.add(*(make_task(f"t{at}", created=at) for at in range(4)))
    return world


def queue_lengths(world: World) -> list[int]:
    return [len(world.engine._state.node_queues.by_row.get(row, ())) for row in range(2)]


def test_load_beyond_the_requests_lengthens_the_wait() -> None:
    world = small_world(make_engine(Rosella(replan=False), ExactSpeeds({})), nodes=2, cpu=4)
    world.step(LoadSeen((("n0", 0.75),)))
    assert world.engine._state.cluster.background_free[:2].tolist() == [0.25, 1.0]
    world.add(*(make_task(f"t{at}", created=at) for at in range(13)))
    assert queue_lengths(world) == [1, 4]


@pytest.mark.parametrize("compare", ["wait", "sed"])
def test_load_within_the_requests_is_no_background_load(compare: str) -> None:
    world = two_nodes(compare=compare)
    world.step(LoadSeen((("n0", 1.0), ("n1", 1.0))))
    assert world.engine._state.cluster.background_free[:2].tolist() == [1.0, 1.0]


def test_a_node_that_is_no_longer_named_has_none() -> None:
    world = small_world(make_engine(Rosella()), nodes=2, cpu=4)
    world.step(LoadSeen((("n0", 0.5), ("gone", 0.5))))
    world.step(LoadSeen(()))
    assert world.engine._state.cluster.background_free[:2].tolist() == [1.0, 1.0]


def test_small_changes_are_ignored() -> None:
    world = small_world(make_engine(Rosella()), nodes=2, cpu=4)
    world.step(LoadSeen((("n0", 0.5),)))
    before = world.engine._state.cluster.usage.head
    world.step(LoadSeen((("n0", 0.52),)))
    assert world.engine._state.cluster.usage.head == before


def test_tasks_wait_even_for_a_fully_busy_node() -> None:
    world = small_world(make_engine(Rosella(replan=False)), nodes=1, cpu=1)
    world.step(LoadSeen((("n0", 1.0),)))
    world.add(make_task("a"), make_task("b", created=1))
    assert (world.node_of("a"), queue_lengths(world)[0]) == ("n0", 1)


def test_a_reused_row_starts_without_load() -> None:
    world = small_world(make_engine(Rosella()), nodes=2, cpu=4)
    world.step(LoadSeen((("n0", 0.5),)))
    world.drop_node("n0")
    world.put_node(make_node("m", cpu=4))
    assert set(world.engine._state.cluster.background_free.tolist()) == {1.0}
