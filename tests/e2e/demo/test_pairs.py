"""Means of pairs and their 95 % intervals."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus_e2e.demo.real.report import mean_interval, ratio_interval


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
