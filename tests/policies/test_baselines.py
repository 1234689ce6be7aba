"""The simple baselines, each checked by its definition."""

from __future__ import annotations

from collections import Counter

import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.policies.place.allocation import LeastAllocated, MostAllocated
from eclectus.policies.place.fit import BestFit, WorstFit
from eclectus.policies.place.jiq import JoinIdle
from eclectus.policies.place.pss import Proportional
from eclectus.policies.place.round_robin import RoundRobin
from worlds import World, numbered, small_world


def test_round_robin_takes_one_node_after_the_other() -> None:
    world = small_world(make_engine(RoundRobin()), nodes=3)
    world.add(*numbered(6))
    assert [world.node_of(f"t{at}") for at in range(6)] == ["n0", "n1", "n2", "n0", "n1", "n2"]


def test_round_robin_skips_full_nodes() -> None:
    world = World(
        make_engine(RoundRobin()), make_node("n0", cpu=1), make_node("n1", cpu=9), make_node("n2", cpu=1)
    )
    world.add(*numbered(6))
    assert Counter(world.placed().values()) == {"n0": 1, "n1": 4, "n2": 1}


def test_round_robin_with_node_queues_ignores_room() -> None:
    world = small_world(make_engine(RoundRobin("lines")), nodes=2, cpu=1)
    world.add(*numbered(4))
    world.end("t0")
    assert world.node_of("t2") == "n0"


def test_idle_nodes_first_then_a_node_queue() -> None:
    engine = make_engine(JoinIdle())
    world = small_world(engine, nodes=4, cpu=1)
    world.add(*numbered(6))
    assert sorted(world.placed().values()) == ["n0", "n1", "n2", "n3"]
    assert engine.queue_counts().node_queues == 2


def test_one_proportional_choice_draws_by_speed() -> None:
    nodes = [make_node("slow", cpu=9000, pods=9000), make_node("fast", cpu=9000, pods=9000)]
    world = World(make_engine(Proportional(), ExactSpeeds({"fast": 3.0})), *nodes)
    world.add(*numbered(2000))
    assert Counter(world.placed().values())["fast"] == pytest.approx(1500, abs=80)


@pytest.mark.parametrize(("policy", "node"), [(BestFit, "tight"), (WorstFit, "loose")])
def test_fit_compares_how_many_more_tasks_would_fit(policy: type[BestFit], node: str) -> None:
    nodes = [make_node("loose", cpu=16), make_node("tight", cpu=3), make_node("small", cpu=1)]
    world = World(make_engine(policy()), *nodes)
    world.add(make_task("pod", cpu=2))
    assert world.node_of("pod") == node


@pytest.mark.parametrize("policy", [LeastAllocated, MostAllocated])
def test_equally_allocated_nodes_are_drawn_at_random_if_asked(policy: type[LeastAllocated]) -> None:
    def first(seed: int) -> str:
        world = small_world(make_engine(policy(ties="random"), seed=seed), nodes=4)
        world.add(make_task("pod"))
        return str(world.node_of("pod"))

    drawn = Counter(first(seed) for seed in range(80))
    assert drawn.keys() == {"n0", "n1", "n2", "n3"}
    assert all(count > 5 for count in drawn.values())
    assert first(7) == first(7)


@pytest.mark.parametrize("policy", [LeastAllocated, MostAllocated])
def test_of_equally_allocated_nodes_the_first_is_taken(policy: type[LeastAllocated]) -> None:
    for seed in range(5):
        world = small_world(make_engine(policy(), seed=seed), nodes=4)
        world.add(make_task("pod"))
        assert world.node_of("pod") == "n0"
