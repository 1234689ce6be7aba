"""The costs by which re-planning ranks nodes: plain numbers for a few and arrays for many say the same."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from builders import ExactSpeeds, make_engine, make_node, make_task
from eclectus.policies.rosella import Rosella
from eclectus.policies.rosella.costs import ClassCosts
from worlds import World

NODES = 12


@pytest.mark.parametrize("seed", range(5))
def test_a_few_nodes_cost_what_they_cost_among_many(seed: int) -> None:
    """To the last bit: otherwise nodes with equal costs would not be equal any more."""
    random = Random(seed)
    speeds = {f"n{at}": random.uniform(0.1, 9.0) for at in range(NODES)}
    nodes = (make_node(f"n{at}", cpu=4, labels={"zone": random.choice("ab")}) for at in range(NODES))
    world = World(make_engine(Rosella(), ExactSpeeds(speeds)), *nodes)
    for at in range(20):
        world.add(make_task(f"t{at}", cpu=random.choice([1, 2]), node=f"n{at % NODES}", phase="Running"))
    view = world.engine._state.view
    task_class = view.task_class(make_task("x", cpu=2, node_selector=(("zone", "a"),)))
    draw = np.random.default_rng(seed)
    costs = ClassCosts(
        task_class,
        view.speeds(task_class),
        draw.choice([0.0, 0.3], view.cluster.capacity),
        [draw.uniform(1.0, 4.0, view.cluster.capacity)],
        preference_weight=3.0,
        version=(),
    )
    rows = np.arange(NODES)
    with_room, waiting = costs.with_room(task_class, rows), costs.waiting(2.0, task_class, rows)
    assert list(costs.each_with_room(task_class, rows.tolist())) == with_room.tolist()
    assert list(costs.each_waiting(2.0, task_class, rows.tolist())) == waiting.tolist()
    assert np.isfinite(with_room).any()
    assert np.isfinite(waiting).any()
