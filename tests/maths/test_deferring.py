"""The number of tasks worth waiting for busy nodes: the closed form against assigning one by one."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from eclectus.maths.deferring import UNLIMITED, pace_in_use, weight_of_waiting, worth_waiting


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


@pytest.mark.parametrize(
    ("load", "slots", "theta"),
    [(0.5, 1, 1.46), (0.8, 1, 2.59), (0.9, 1, 3.80), (0.5, 4, 2.14), (0.7, 4, 3.14), (0.5, 16, 3.80)],
)
def test_it_grows_with_load_and_slots(load: float, slots: int, theta: float) -> None:
    """1 + .5 slots^.6 (load / (1 - load))^.8, to the nearest power of 1.1."""
    found = weight_of_waiting(load, slots)
    assert found == pytest.approx(theta, abs=0.01)
    exact = 1 + 0.5 * slots**0.6 * (load / (1 - load)) ** 0.8
    assert exact / 1.1**0.5 <= found <= exact * 1.1**0.5


def test_at_load_0_theta_is_1() -> None:
    assert weight_of_waiting(0.0, 100) == 1.0


@pytest.mark.parametrize(("load", "slots"), [(0.95, 1), (0.8, 4), (0.9, 16), (1.0, 1)])
def test_theta_is_bounded(load: float, slots: int) -> None:
    assert weight_of_waiting(load, slots) == 4.0


@pytest.mark.parametrize(
    ("queue", "share"),
    [([0, 0], 0.0), ([4, 0], 0.8), ([0, 4], 0.2), ([2, 2], 0.5), ([9, 1], 0.85), ([-1, 0], 0.0)],
)
def test_slots_in_use_count_by_their_rate(queue: list[float], share: float) -> None:
    found = pace_in_use(np.array(queue, dtype=float), np.array([4.0, 4.0]), np.array([4.0, 1.0]))
    assert found == pytest.approx(share)


def test_without_capacity_all_of_it_is_in_use() -> None:
    assert pace_in_use(np.zeros(2), np.ones(2), np.zeros(2)) == 1.0
    assert pace_in_use(np.zeros(0), np.zeros(0), np.zeros(0)) == 1.0
