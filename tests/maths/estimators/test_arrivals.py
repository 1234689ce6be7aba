"""The arrival rate of Poisson streams, and special cases: bursts, no arrivals, a full memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from eclectus.maths.load import ArrivalRate


def estimator(times: np.ndarray, fast: int = 100, slow: int = 1000) -> ArrivalRate:
    rate = ArrivalRate(fast, slow)
    for at in times.tolist():
        rate.add(at)
    return rate


def poisson(seed: int, rate: float, count: int) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate, count))


@pytest.mark.parametrize("window", [5, 20])
def test_at_an_arrival_it_is_unbiased(window: int) -> None:
    """Mean of 4,000 estimates of a rate of 3; S / sum would be off by S / (S - 1), 5 to 25 %."""
    ends = [poisson(seed, 3.0, window + 1) for seed in range(4000)]
    found = [estimator(times, window, window).fast(times[-1]) for times in ends]
    error = np.std(found) / np.sqrt(len(found))
    assert np.mean(found) == pytest.approx(3.0, abs=3 * error)
    assert error < 0.05


def test_at_any_other_time_it_is_low_by_half_of_one_in_its_window() -> None:
    window, asked = 20, 7.0
    found = []
    for seed in range(4000):
        times = poisson(seed, 6.0, 60)
        found.append(estimator(times[times <= asked], window, window).fast(asked))
    assert np.mean(found) / 6.0 == pytest.approx(1 - 0.5 / window, abs=0.015)


def test_its_error_is_one_over_the_root_of_its_window() -> None:
    found = [
        estimator(times, 25, 100).slow(times[-1]) for times in (poisson(s, 3.0, 101) for s in range(1000))
    ]
    assert np.std(found) / 3.0 == pytest.approx(0.1, rel=0.15)


def test_it_decays_after_arrivals_stop() -> None:
    """Without the open interval it would stay at 3."""
    times = poisson(1, 3.0, 2000)
    rate, end = estimator(times), times[-1]
    found = [rate.slow(end + quiet) for quiet in (0.0, 1000.0, 10_000.0, 100_000.0)]
    assert found[0] == pytest.approx(3.0, rel=0.1)
    assert found[2] == pytest.approx(0.1, rel=0.05)
    assert found[3] == pytest.approx(0.01, rel=0.01)
    assert all(one > other for one, other in pairwise(found))


def test_the_fast_window_follows_a_change_that_the_slow_one_averages() -> None:
    slow_part, fast_part = poisson(2, 1.0, 1000), poisson(3, 10.0, 150)
    times = np.concatenate([slow_part, slow_part[-1] + fast_part])
    rate = estimator(times)
    assert rate.fast(times[-1]) == pytest.approx(10.0, rel=0.25)
    assert rate.slow(times[-1]) < 1.5


def test_tasks_at_one_instant_are_one_moment_of_many() -> None:
    """Ten at a time, once a second on average, are ten a second; no burst is an infinite rate."""
    rate = ArrivalRate(50, 200)
    times = poisson(4, 1.0, 201).tolist()
    for at in times:
        for _ in range(5):
            rate.add(at)
        rate.add(at, 5)
    assert rate.slow(times[-1]) == pytest.approx(10.0, rel=0.25)


def test_a_list_of_all_pending_tasks_gives_no_rate() -> None:
    rate = ArrivalRate()
    for _ in range(5000):
        rate.add(100.0)
    assert (rate.fast(100.0), rate.slow(1e6)) == (0.0, 0.0)
    for at in range(101, 111):
        rate.add(float(at))
    assert rate.slow(110.0) == pytest.approx(0.9)


def test_it_remembers_no_more_than_its_window() -> None:
    rate = estimator(np.arange(10_000.0), fast=10, slow=50)
    assert len(rate._times) == 51
    assert rate.slow(9999.0) == pytest.approx(49 / 50)
    assert rate.fast(9999.0) == pytest.approx(9 / 10)
