"""Estimates of waits: the worked examples, the exact waits of small systems, and what holds for all."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.maths.wait_estimates import (
    Station,
    backlog_wait_seconds,
    erlang_c,
    expected_wait_seconds,
    steady_wait_seconds,
)

# -- worked examples -------------------------------------------------------------------------------


def test_several_servers_share_what_one_server_alone_would_have_waiting() -> None:
    five = Station(servers=5, utilisation=0.72, service_seconds=60.0, service_scv=4.0)
    assert erlang_c(5, 0.72) == pytest.approx(0.4104, abs=1e-4)
    assert steady_wait_seconds(five) == pytest.approx(44.0, abs=0.05)
    one = Station(servers=1, utilisation=0.72, service_seconds=60.0, service_scv=4.0)
    assert steady_wait_seconds(one) == pytest.approx(386, abs=0.5)


def test_a_saturated_class_waits_for_its_backlog() -> None:
    station = Station(servers=5, utilisation=1.0, service_seconds=60.0, service_scv=4.0)
    assert backlog_wait_seconds(station, 40 * 60.0) == 510.0
    assert expected_wait_seconds(station, 40 * 60.0) == 510.0


def test_tasks_that_come_in_batches_wait_for_each_other() -> None:
    """22 s for what the batch finds, 4.5 s for its own tasks; the same tasks one by one wait 4 s."""
    batches = Station(servers=1, utilisation=0.8, service_seconds=1.0, batch=10.0)
    assert steady_wait_seconds(batches) == pytest.approx(26.5)
    assert steady_wait_seconds(Station(servers=1, utilisation=0.8, service_seconds=1.0)) == pytest.approx(4.0)


def test_arrivals_that_vary_more_wait_longer() -> None:
    station = Station(servers=10, utilisation=0.8, service_seconds=1.0, arrival_scv=3.0)
    assert steady_wait_seconds(station) == pytest.approx(0.409, abs=1e-3)


# -- exact waits -----------------------------------------------------------------------------------


def exact_erlang_c(servers: int, utilisation: float) -> float:
    """The recursion from no server on."""
    blocked, offered = 1.0, servers * utilisation
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - utilisation * (1 - blocked))


@pytest.mark.parametrize("servers", [1, 2, 10, 100, 1000, 5000])
@pytest.mark.parametrize("utilisation", [0.3, 0.8, 0.95, 0.99])
def test_the_short_recursion_is_erlangs(servers: int, utilisation: float) -> None:
    assert erlang_c(servers, utilisation) == pytest.approx(exact_erlang_c(servers, utilisation), abs=1e-12)


def exact_batch_wait(servers: int, utilisation: float, size: int) -> float:
    """Mean wait of tasks in batches of `size` at exponential servers of mean 1 s, from the cut equations."""
    rate = utilisation * servers / size
    states = int(servers + 60 * size / (1 - utilisation))
    share, inside = [1.0], 0.0
    for count in range(states):
        inside += share[count] - (share[count - size] if count >= size else 0.0)
        share.append(rate * inside / min(count + 1, servers))
    queued = sum(max(count - servers, 0) * each for count, each in enumerate(share))
    return queued / sum(share) / (rate * size)


@pytest.mark.parametrize("size", [1, 3, 10])
@pytest.mark.parametrize("utilisation", [0.7, 0.8, 0.9])
@pytest.mark.parametrize("servers", [1, 2, 5, 10, 20])
def test_batches_at_several_servers_are_within_an_eighth(servers: int, utilisation: float, size: int) -> None:
    station = Station(servers, utilisation, service_seconds=1.0, batch=size)
    exact = exact_batch_wait(servers, utilisation, size)
    assert steady_wait_seconds(station) == pytest.approx(exact, rel=0.125)


@pytest.mark.parametrize("size", [3, 10])
@pytest.mark.parametrize("utilisation", [0.8, 0.9])
def test_at_fifty_servers_they_are_within_a_quarter(utilisation: float, size: int) -> None:
    station = Station(50, utilisation, service_seconds=1.0, batch=size)
    exact = exact_batch_wait(50, utilisation, size)
    assert steady_wait_seconds(station) == pytest.approx(exact, rel=0.25)


# -- what holds for all ----------------------------------------------------------------------------

STATIONS = st.builds(
    Station,
    servers=st.integers(1, 300),
    utilisation=st.floats(0.0, 0.99),
    service_seconds=st.floats(0.1, 1e4),
    service_scv=st.floats(0.0, 20.0),
    arrival_scv=st.floats(0.0, 20.0),
    batch=st.floats(1.0, 50.0),
)


@given(STATIONS, st.floats(0.0, 1e6))
def test_near_saturation_the_larger_of_formula_and_backlog_counts(station: Station, queued: float) -> None:
    larger = max(steady_wait_seconds(station), backlog_wait_seconds(station, queued))
    expected = larger if station.utilisation >= 0.9 else steady_wait_seconds(station)
    assert expected_wait_seconds(station, queued) == expected


@given(st.floats(0.0, 400.0), st.floats(0.0, 0.999))
def test_an_arrival_waits_the_less_often_the_more_servers_there_are(servers: float, load: float) -> None:
    assert 0.0 <= erlang_c(servers + 0.5, load) <= erlang_c(servers, load) + 1e-12
    assert erlang_c(servers, load) <= 1.0


def test_a_class_without_servers_waits_for_ever() -> None:
    nowhere = Station(servers=0, utilisation=0.5, service_seconds=1.0)
    assert steady_wait_seconds(nowhere) == backlog_wait_seconds(nowhere, 0.0) == inf
