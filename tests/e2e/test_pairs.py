"""Pairs: their order, their means with 95 % intervals, and what is said of these."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus_e2e.pairs import Interval, alternating, mean_interval, ratio_interval, verdict


def test_the_interval_of_a_mean_is_students():
    """Of 1, 2, 3 the deviation is 1; Student's t of two degrees of freedom is 4.3027."""
    found = mean_interval([1.0, 2.0, 3.0])
    half = 4.3027 / math.sqrt(3)
    assert (found.mean, found.low, found.high) == pytest.approx((2.0, 2.0 - half, 2.0 + half), abs=1e-4)
    assert found.pairs == 3
    assert found.text() == "2.00 (-0.48 to 4.48)"


@given(st.lists(st.floats(0.1, 10.0), min_size=2, max_size=6))
def test_a_ratio_of_exchanged_sides_is_the_reciprocal(ratios):
    found, other = ratio_interval(ratios), ratio_interval([1 / ratio for ratio in ratios])
    assert found.mean * other.mean == pytest.approx(1.0)
    assert found.low * other.high == pytest.approx(1.0)
    assert found.low <= found.mean <= found.high


def test_one_pair_has_no_interval():
    found = ratio_interval([0.5])
    assert (found.mean, found.low, found.high, found.pairs) == (pytest.approx(0.5), None, None, 1)
    assert found.text() == "0.50"


def test_what_is_not_a_number_is_left_out():
    assert mean_interval([1.0, math.nan, 3.0]).pairs == 2
    assert ratio_interval([math.nan, math.inf, 2.0]).mean == pytest.approx(2.0)
    assert math.isnan(ratio_interval([]).mean)
    assert ratio_interval([]).text() == "-"


def test_what_ended_one_pair_begins_the_next():
    runs = list(alternating(("kube", "ours"), 3))
    assert [one for _, one in runs] == ["kube", "ours", "ours", "kube", "kube", "ours"]
    assert [pair for pair, _ in runs] == [0, 0, 1, 1, 2, 2]
    assert [one for _, one in alternating("abc", 2)] == [*"abccba"]


@pytest.mark.parametrize(
    ("found", "more_is_better", "expected"),
    [
        (Interval(0.8, 0.7, 0.9, 5), False, "won"),
        (Interval(0.8, 0.7, 0.9, 5), True, "lost"),
        (Interval(1.2, 1.1, 1.3, 5), False, "lost"),
        (Interval(1.2, 1.1, 1.3, 5), True, "won"),
        (Interval(0.8, 0.6, 1.1, 5), False, "equal"),
        (Interval(1.0, 1.0, 1.0, 5), False, "equal"),
        (Interval(0.8, 0.7, 0.9, 4), False, "too few pairs"),
        (Interval(0.8, None, None, 1), False, "too few pairs"),
    ],
)
def test_the_interval_of_five_pairs_decides(found, more_is_better, expected):
    assert verdict(found, more_is_better=more_is_better) == expected


def test_differences_are_even_at_nothing():
    assert verdict(Interval(0.8, 0.7, 0.9, 5), even=0.0) == "lost"
    assert verdict(Interval(0.1, -0.1, 0.3, 5), even=0.0) == "equal"
