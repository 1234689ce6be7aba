"""Window and cut-off: tables of the formulas, and the probability to cut off a healthy node."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from eclectus.maths.load import (
    LENGTH_FACTOR,
    MIN_NODES,
    PERCENTILE,
    PERIOD_SECONDS,
    PERIODS,
    LowPercentile,
    cut_margin,
    cut_off_rate,
    error_aimed,
    load_ratio,
    unlikelihood,
    window_length,
)


def cut_seconds(samples, rate, margin):
    """T_cut, seconds."""
    return (1.0 + margin) * samples / rate


@pytest.mark.parametrize(
    ("arrivals", "capacity", "load"),
    [(4, 10, 0.4), (0, 10, 0.05), (11, 10, 0.98), (5, 0, 0.98), (0, 0, 0.98)],
)
def test_the_load_is_clamped(arrivals: float, capacity: float, load: float) -> None:
    assert load_ratio(arrivals, capacity) == pytest.approx(load)


@pytest.mark.parametrize(
    ("nodes", "load", "over_c1"),
    [
        (30, 0.5, 151),
        (30, 0.8, 945),
        (30, 0.9, 3780),
        (1000, 0.5, 307),
        (1000, 0.9, 7680),
        (1000, 0.95, 30700),
    ],
)
def test_without_a_cap_windows_are_as_long_as_the_paper_asks(nodes: int, load: float, over_c1: float) -> None:
    length = window_length(nodes, error_aimed(load), 0.0, most=10**9)
    assert length / LENGTH_FACTOR == pytest.approx(over_c1, rel=0.01)


def test_windows_grow_with_the_spread_of_sizes_up_to_the_cap() -> None:
    lengths = [window_length(3, error_aimed(0.05), variation, most=64) for variation in (0.0, 1.0, 10.0)]
    assert lengths == [28, 55, 64]


def test_a_cap_below_the_minimal_length_takes_precedence() -> None:
    assert window_length(2, error_aimed(0.05), 0.0, most=4) == 4


def test_the_cut_off_costs_a_tenth_of_the_spare_capacity() -> None:
    """All n nodes just below it would together do c0 (mu_bar - lambda)."""
    assert 30 * cut_off_rate(capacity=100.0, load=0.8, nodes=30, share=0.1) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("nodes", "samples", "margin"),
    [
        (30, 64, 0.58),
        (30, 128, 0.38),
        (30, 256, 0.26),
        (1000, 64, 0.91),
        (1000, 128, 0.58),
        (1000, 256, 0.39),
    ],
)
def test_the_margin_equals_the_reference_values(nodes: int, samples: int, margin: float) -> None:
    assert cut_margin(np.array([samples]), nodes, 2.0, 0.0)[0] == pytest.approx(margin, abs=0.006)


def test_without_samples_no_margin_is_wide_enough() -> None:
    assert cut_margin(np.zeros(1), 30, 2.0, 0.1)[0] == np.inf


def below(samples: int, mean: float) -> float:
    """P(a Poisson number of this mean < samples)."""
    terms = [-mean]
    for k in range(1, samples):
        terms.append(terms[-1] + log(mean / k))
    return sum(exp(term) for term in terms)


@pytest.mark.parametrize("nodes", [30, 1000])
@pytest.mark.parametrize("samples", [64, 128, 256])
@pytest.mark.parametrize("load", [0.5, 0.8, 0.9])
def test_idle_workers_are_cut_off_less_often_than_promised(nodes: int, samples: int, load: float) -> None:
    """Exactly: probes arrive at an idle worker at rate mu*; fewer than L of them in T_cut."""
    rate, error = cut_off_rate(1.0, load, nodes, 0.1), error_aimed(load)
    seconds = cut_seconds(np.array([samples]), rate, cut_margin(np.array([samples]), nodes, 2.0, error))
    assert below(samples, rate * float(seconds[0])) <= nodes**-2.0
    paper = (1 + error) * samples
    assert below(samples, paper) > nodes**-2.0


def test_the_same_seen_in_a_thousand_idle_workers() -> None:
    """Simulated, with x = 1, so that one in thirty is measurable: windows that took too long."""
    rng, nodes, samples, certainty = np.random.default_rng(5), 30, 64, 1.0
    rate = cut_off_rate(30.0, 0.8, nodes, 0.1)
    seconds = cut_seconds(np.array([samples]), rate, cut_margin(np.array([samples]), nodes, certainty, 0.06))
    took = rng.exponential(1 / rate, (1000, 20, samples)).sum(axis=2)
    assert np.mean(took > seconds) < 1 / nodes
    assert np.mean(took > (1 + 0.06) * samples / rate) > 0.2  # the paper's margin


def test_few_nodes_count_as_the_minimum() -> None:
    assert unlikelihood(2, 2.0) == unlikelihood(MIN_NODES, 2.0) < unlikelihood(30, 2.0)


# -- the guaranteed capacity -----------------------------------------------------------------------


def test_the_floor_is_a_low_percentile_of_the_last_hour() -> None:
    percentile = LowPercentile()
    assert percentile.value == 0.0
    for minute in range(100):
        percentile.add(
            1000.0 if minute == 70 else 1.0 if minute < 40 else 50.0 + minute, minute * PERIOD_SECONDS
        )
    assert percentile.value == pytest.approx(93.0, abs=1.0)


def test_the_floor_is_read_once_a_period() -> None:
    percentile = LowPercentile()
    for begins in (100.0, 100.0 + PERIOD_SECONDS):
        assert not percentile.is_due(begins)
        assert not percentile.is_due(begins + PERIOD_SECONDS - 1)
        assert percentile.is_due(begins + PERIOD_SECONDS)
        percentile.add(1.0, begins + PERIOD_SECONDS)


def test_the_percentile_is_interpolated() -> None:
    readings, percentile = np.random.default_rng(3).random(PERIODS), LowPercentile()
    for count, reading in enumerate(readings, start=1):
        percentile.add(float(reading), PERIOD_SECONDS * count)
        assert percentile.value == pytest.approx(np.percentile(readings[:count], PERCENTILE))
