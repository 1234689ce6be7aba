"""Waits for what is ahead: the worked example, a simulated queue, nodes that are free at different times."""

from __future__ import annotations

import heapq
from random import Random
from statistics import fmean

import numpy as np
import pytest

from eclectus.maths.backlog_wait import Filling, residual_seconds


def equal_servers(count: int) -> Filling:
    return Filling(np.zeros(count), np.ones(count))


def test_a_task_waits_for_what_is_ahead_and_what_is_left_of_the_service_at_hand() -> None:
    """40 tasks of 60 s at five servers; 150 s are left of what runs."""
    assert equal_servers(5).seconds(40 * 60.0 + residual_seconds(60.0, 4.0)) == 510.0


@pytest.mark.parametrize("ahead", [0, 5, 40])
def test_it_is_the_mean_wait_at_exponential_servers(ahead: int) -> None:
    servers, random = 4, Random(1)
    waits = [wait_at_exponential_servers(servers, ahead, random) for _ in range(4000)]
    expected = equal_servers(servers).seconds(ahead + residual_seconds(1.0, 1.0))
    assert fmean(waits) == pytest.approx(expected, rel=0.05)


def wait_at_exponential_servers(servers: int, ahead: int, random: Random) -> float:
    """All servers are busy, and so many tasks of 1 s in the mean are ahead."""
    free_at = [random.expovariate(1.0) for _ in range(servers)]
    heapq.heapify(free_at)
    for _ in range(ahead):
        heapq.heapreplace(free_at, free_at[0] + random.expovariate(1.0))
    return free_at[0]


def test_work_goes_to_the_servers_that_are_free_first() -> None:
    """One slot is free after 10 s, two after 20 s, one after 50 s."""
    filling = Filling(np.array([20.0, 50.0, 10.0]), np.array([2.0, 1.0, 1.0]))
    # 10 s of work until the second node is free too, then three slots, and four from 100 s of work on.
    found = [filling.seconds(work) for work in (0.0, 5.0, 10.0, 40.0, 100.0, 140.0)]
    assert found == [10.0, 15.0, 20.0, 30.0, 50.0, 60.0]


def test_so_it_does_whatever_the_servers_are() -> None:
    """The definition: until then the servers have been free for the work in all."""
    random = np.random.default_rng(1)
    for _ in range(50):
        busy, slots = random.integers(0, 5, 9) * 7.0, random.integers(1, 4, 9) * 1.0
        work = random.uniform(0.1, 300.0)
        until = Filling(busy, slots).seconds(work)
        assert np.sum(slots * np.maximum(until - busy, 0.0)) == pytest.approx(work)
