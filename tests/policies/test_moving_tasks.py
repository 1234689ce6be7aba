"""Rosella's node queues: which tasks move to a node with room, and that none moves twice."""

from __future__ import annotations

import pytest

from builders import ExactSpeeds, make_engine, make_node
from eclectus.engine.queues.node_queues import NodeQueues
from eclectus.framework import Line
from eclectus.policies.line.fifo import FifoLine
from eclectus.policies.rosella import Rosella, RosellaLine, line
from short_scenarios import poisson, runs, scenario
from worlds import World, numbered


def with_queue(line: Line, rates: dict[str, float], waiting: int) -> World:
    """`waiting` tasks are queued at node `one`, which was alone when they came; then others are added."""
    first, *others = rates
    place = Rosella(replan=False, compare="sed")
    world = World(make_engine(place, ExactSpeeds(rates), line=line), make_node(first, cpu=1))
    world.add(*numbered(1 + waiting))
    for name in others:
        world.put_node(make_node(name, cpu=1))
    return world


def on(world: World, node: str) -> list[str]:
    return [name for name, place in world.placed().items() if place == node]


def test_a_task_moves_to_a_node_that_ends_it_sooner() -> None:
    world = with_queue(RosellaLine(), {"one": 1.0, "new": 1.0}, waiting=3)
    assert on(world, "new") == ["t3"]  # the last in the queue has the longest wait


def test_with_fifo_no_task_moves() -> None:
    assert on(with_queue(FifoLine(), {"one": 1.0, "new": 1.0}, waiting=3), "new") == []


@pytest.mark.parametrize(("bound", "moves"), [(0.0, True), (0.49, True), (0.51, False), (5.0, False)])
def test_a_task_moves_only_if_it_gains_more_than_the_bound(bound: float, moves: bool) -> None:
    """1 s wait and 1 s running there, 4/3 s running here: 1.5 times as long."""
    world = with_queue(RosellaLine(bound=bound), {"one": 1.0, "new": 0.75}, waiting=1)
    assert bool(on(world, "new")) is moves


def test_as_many_tasks_move_as_there_is_room_for() -> None:
    world = with_queue(RosellaLine(), {"one": 1.0}, waiting=8)
    world.put_node(make_node("wide", cpu=3))
    assert len(on(world, "wide")) == 3
    world.end(on(world, "wide")[0])
    assert len(on(world, "wide")) == 3


def test_the_queue_of_a_node_that_is_almost_stopped_is_emptied() -> None:
    world = with_queue(RosellaLine(), {"one": 1e-6}, waiting=2)
    world.put_node(make_node("good", cpu=1))
    world.end(on(world, "good")[0])
    assert len(on(world, "good")) == 1
    assert len(world.engine._state.node_queues) == 0


def test_no_task_moves_to_a_node_of_speed_0() -> None:
    world = with_queue(RosellaLine(), {"one": 1.0, "dead": 0.0}, waiting=3)
    assert on(world, "dead") == []


def test_no_task_moves_to_a_node_that_may_not_run_it() -> None:
    world = with_queue(RosellaLine(), {"one": 1.0}, waiting=2)
    world.put_node(make_node("closed", cpu=9, unschedulable=True))
    assert on(world, "closed") == []


def test_a_node_inspects_no_more_queues_than_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """And in each queue no more than a few positions, however long it is."""
    world = with_queue(RosellaLine(), {f"n{at}": 1.0 for at in range(40)}, waiting=1000)
    looks = []
    gain = line._gain
    monkeypatch.setattr(line, "_gain", lambda *asked: looks.append(asked) or gain(*asked))
    world.add(*numbered(400, "more"))
    looks.clear()
    next(RosellaLine(looks=5).steal(world.engine._state.view, world.engine._state.cluster.rows["n0"]), None)
    assert 5 <= len(looks) <= 5 * line.POSITIONS


def test_nobody_moves_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[str] = []
    move = NodeQueues.move
    monkeypatch.setattr(
        NodeQueues,
        "move",
        lambda self, reservation, row, to: (
            moved.append(reservation.head.uid) or move(self, reservation, row, to)
        ),
    )
    means(RosellaLine.__name__, 2000)
    assert len(moved) > 50
    assert len(moved) == len(set(moved))


def means(line: str, tasks: int) -> tuple[float, float]:
    """Mean and p99 with two choices in proportion to speed, known rates, load .8."""
    asked = scenario(
        cluster={"groups": [{"name": "slow", "count": 8}, {"name": "fast", "count": 8, "speed": 4}]},
        workload=poisson(0.8),
        learn={"policy": "truth"},
        profiles=[
            {
                "schedulerName": "it",
                "place": {"policy": "rosella", "view": "sample"},
                "line": {"policy": "rosella" if line == "RosellaLine" else "fifo"},
                "learn": {"policy": "truth"},
            }
        ],
        measure={"tasks": tasks},
    )
    (one,) = runs(asked, [1])
    return one.response.mean, one.response.p99


def test_moving_tasks_shortens_response_times() -> None:
    moving, staying = means("RosellaLine", 4000), means("FifoLine", 4000)
    assert moving[0] < 0.9 * staying[0]
    assert moving[1] < 0.9 * staying[1]
