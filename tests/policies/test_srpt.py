"""Shortest remaining work first: which reservation may overtake which, and how often."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eclectus.policies.line.srpt import ShortestRemaining
from one_queue import LONG, CountingLine, Reserving, job, one_server, served


class CountingSrpt(CountingLine, ShortestRemaining):
    """Shortest remaining work first, counting."""


def test_the_shortest_goes_first_unless_a_job_has_been_overtaken_enough() -> None:
    """A is overtaken by 40 s of the allowed 50; all other jobs are longer than the rest, so A is next."""
    world = one_server(ShortestRemaining())
    for one in (job("A", 10, 30), job("B", 60, 2), job("C", 40, 1), job("D", 40, 4)):
        world.add(*one)
    assert served(world, most=4) == ["C", "A", "B", "D"]


def test_of_equal_jobs_the_first_goes_first() -> None:
    world = one_server(ShortestRemaining())
    for name in "xyz":
        world.add(*job(name, 10))
    assert served(world) == ["x", "y", "z"]


def test_a_job_queued_twice_is_overtaken_once() -> None:
    world = one_server(ShortestRemaining(), Reserving(reservations=2))
    for one in (job("A", 10, 9), job("B", 20), job("C", 20)):
        world.add(*one)
    assert served(world, most=3) == ["B", "C", "A"]


def test_a_long_task_at_the_head_goes_first() -> None:
    world = one_server(ShortestRemaining())
    world.add(*job("l", LONG))
    world.add(*job("s", 1))
    assert served(world) == ["l", "s"]


def test_a_long_task_overtakes_no_job() -> None:
    """Not even a job with more remaining work: a short task that came first would wait behind a long one."""
    world = one_server(ShortestRemaining(), Reserving(sticky=True))
    world.add(*job("s", 80, 5))
    world.add(*job("l", LONG))
    assert served(world) == ["s"] * 5 + ["l"]


def test_a_short_task_may_overtake_a_long_one_that_is_not_at_the_head() -> None:
    world = one_server(ShortestRemaining())
    for one in (job("a", 10), job("l", LONG), job("b", 5)):
        world.add(*one)
    assert served(world) == ["b", "a", "l"]


SIZES = st.sampled_from([1.0, 2.0, 5.0, 11.0, 40.0, 90.0, LONG])
ARRIVALS = st.lists(st.tuples(SIZES, st.integers(1, 4), st.integers(0, 3)), min_size=2, max_size=14)


@settings(max_examples=50)
@given(
    arrivals=ARRIVALS, reservations=st.integers(1, 3), sticky=st.booleans(), slack=st.sampled_from([0, 1, 5])
)
def test_no_reservation_is_overtaken_by_more_than_its_slack(
    arrivals: list[tuple[float, int, int]], reservations: int, sticky: bool, slack: int
) -> None:
    """Jobs arrive, each followed by a few completions; then all tasks run."""
    line = CountingSrpt(slack=slack)
    world = one_server(line, Reserving(reservations, sticky))
    for number, (seconds, count, ends) in enumerate(arrivals):
        world.add(*job(f"{number}-", seconds, count))
        for running in list(world.placed())[:ends]:
            world.end(running)
    served(world)
    assert (world.tasks, world.faults) == ({}, [])
    assert line.worst <= slack


@pytest.mark.parametrize(("slack", "limited"), [(5.0, True), (1e9, False)])
def test_without_the_limit_a_short_job_is_overtaken_again_and_again(slack: float, limited: bool) -> None:
    line = CountingSrpt(slack=slack)
    world = one_server(line)
    world.add(*job("A", 10, 9))
    for number in range(20):
        world.add(*job(f"{number}-", 9))
    served(world)
    assert (line.worst <= 5) is limited
