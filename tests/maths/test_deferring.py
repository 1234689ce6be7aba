"""The number of tasks worth waiting for busy nodes: the closed form against assigning one by one."""

from __future__ import annotations

from math import inf
from random import Random

import numpy as np
import pytest

from eclectus.maths.replanning import (
    UNLIMITED,
    in_steps,
    in_steps_at,
    step_of,
    weight_of_waiting,
    worth_waiting,
)


def counted(
    theta: float, overflow: list[float], pace: list[float], service: list[float], limit: float
) -> int:
    """Each task takes the node of least cost, until no cost is below the limit."""
    tasks, overflow = 0, list(overflow)
    while True:
        costs = [
            theta * max(missing, 1.0) / speed + runs
            for missing, speed, runs in zip(overflow, pace, service, strict=True)
        ]
        best = min(range(len(costs)), key=costs.__getitem__)
        if costs[best] >= limit:
            return tasks
        overflow[best] += 1
        tasks += 1


@pytest.mark.parametrize("seed", range(40))
def test_it_equals_assigning_tasks_one_by_one(seed: int) -> None:
    rng = Random(seed)
    nodes = rng.randrange(1, 8)
    overflow = [float(rng.randrange(1, 6)) for _ in range(nodes)]
    rate = [rng.choice([1.0, 2.5, 4.0, 8.0]) for _ in range(nodes)]
    pace = [rng.choice([1, 4, 16]) * each for each in rate]
    service = [1 / each for each in rate]
    theta, limit = rng.uniform(1, 20), rng.uniform(0.2, 3)
    found = worth_waiting(theta, np.array(overflow), np.array(pace), np.array(service), limit)
    assert found == counted(theta, overflow, pace, service, limit)


def test_no_task_waits_for_a_node_no_faster_than_the_one_with_room() -> None:
    one = np.ones(1)
    assert worth_waiting(4.0, one, one, one, 1.0) == 0


def test_no_task_waits_for_a_node_of_speed_0() -> None:
    assert worth_waiting(4.0, np.ones(1), np.zeros(1), np.full(1, np.inf), 1.0) == 0


def test_if_nodes_with_room_have_speed_0_any_number_may_wait() -> None:
    assert worth_waiting(4.0, np.ones(1), np.ones(1), np.ones(1), np.inf) == UNLIMITED


# -- theta -------------------------------------------------------------------


@pytest.mark.parametrize(("load", "theta"), [(0.5, 1.74), (0.8, 3.125), (0.9, 4.26), (0.99, 6.31)])
def test_theta_grows_with_the_load_of_the_faster_nodes(load: float, theta: float) -> None:
    """1 / (1 - .85 load), to the nearest power of 1.25."""
    found = weight_of_waiting(load)
    assert theta == pytest.approx(1 / (1 - 0.85 * load), rel=0.01)
    assert theta / 1.25**0.5 <= found <= theta * 1.25**0.5


def test_without_arrivals_theta_is_1() -> None:
    assert weight_of_waiting(0.0) == 1.0


@pytest.mark.parametrize("load", [1.0, 3.0, inf])
def test_theta_is_bounded(load: float) -> None:
    assert weight_of_waiting(load) == pytest.approx(1 / 0.15, rel=0.12)


def test_powers_of_a_step_are_their_own_nearest_steps() -> None:
    powers = 1.25 ** np.arange(-5.0, 6.0)
    assert in_steps(powers) == pytest.approx(powers)
    assert step_of(powers * 1.1).tolist() == step_of(powers / 1.1).tolist() == list(range(-5, 6))


def test_a_single_value_is_rounded_as_many_are() -> None:
    """To the last bit: otherwise nodes with equal costs would not be equal any more."""
    values = np.exp(np.random.default_rng(1).uniform(-20.0, 20.0, 5000))
    assert [in_steps_at(value) for value in values.tolist()] == in_steps(values).tolist()
