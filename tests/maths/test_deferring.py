"""How many tasks may wait for busy nodes: the closed form against counting one by one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from eclectus.maths.deferring import MOST, worth_waiting


def counted(theta: float, over: list[float], pace: list[float], service: list[float], limit: float) -> int:
    """Task after task takes the node that costs it least, until none costs less than the limit."""
    tasks, over = 0, list(over)
    while True:
        costs = [
            theta * max(missing, 1.0) / speed + runs
            for missing, speed, runs in zip(over, pace, service, strict=True)
        ]
        best = min(range(len(costs)), key=costs.__getitem__)
        if costs[best] >= limit:
            return tasks
        over[best] += 1
        tasks += 1


@pytest.mark.parametrize("seed", range(40))
def test_it_is_what_one_finds_by_giving_places_out(seed: int) -> None:
    chance = Random(seed)
    nodes = chance.randrange(1, 8)
    over = [float(chance.randrange(1, 6)) for _ in range(nodes)]
    rate = [chance.choice([1.0, 2.5, 4.0, 8.0]) for _ in range(nodes)]
    pace = [chance.choice([1, 4, 16]) * each for each in rate]
    service = [1 / each for each in rate]
    theta, limit = chance.uniform(1, 20), chance.uniform(0.2, 3)
    found = worth_waiting(theta, np.array(over), np.array(pace), np.array(service), limit)
    assert found == counted(theta, over, pace, service, limit)


def test_nobody_waits_for_a_node_no_faster_than_the_one_with_room() -> None:
    one = np.ones(1)
    assert worth_waiting(4.0, one, one, one, 1.0) == 0


def test_nobody_waits_for_a_node_that_does_no_work() -> None:
    assert worth_waiting(4.0, np.ones(1), np.zeros(1), np.full(1, np.inf), 1.0) == 0


def test_where_nodes_with_room_do_no_work_the_number_is_still_one() -> None:
    assert worth_waiting(4.0, np.ones(1), np.ones(1), np.ones(1), np.inf) == MOST
