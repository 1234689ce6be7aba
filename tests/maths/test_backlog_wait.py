"""Waits for what is ahead: the worked example, a simulated queue, and no servers."""

from __future__ import annotations

import heapq
from math import inf
from random import Random
from statistics import fmean

import pytest

from eclectus.maths.backlog_wait import backlog_wait_seconds


def test_a_task_waits_for_what_is_ahead_and_what_is_left_of_the_service_at_hand() -> None:
    """40 tasks of 60 s at five servers; 150 s are left of what runs."""
    assert backlog_wait_seconds(5, 40 * 60.0, service_seconds=60.0, service_scv=4.0) == 510.0


@pytest.mark.parametrize("ahead", [0, 5, 40])
def test_it_is_the_mean_wait_at_exponential_servers(ahead: int) -> None:
    servers, random = 4, Random(1)
    waits = [wait_at_exponential_servers(servers, ahead, random) for _ in range(4000)]
    expected = backlog_wait_seconds(servers, float(ahead), service_seconds=1.0, service_scv=1.0)
    assert fmean(waits) == pytest.approx(expected, rel=0.05)


def wait_at_exponential_servers(servers: int, ahead: int, random: Random) -> float:
    """All servers are busy, and so many tasks of 1 s in the mean are ahead."""
    free_at = [random.expovariate(1.0) for _ in range(servers)]
    heapq.heapify(free_at)
    for _ in range(ahead):
        heapq.heapreplace(free_at, free_at[0] + random.expovariate(1.0))
    return free_at[0]


def test_without_servers_it_waits_for_ever() -> None:
    assert backlog_wait_seconds(0, 0.0, service_seconds=1.0, service_scv=1.0) == inf
