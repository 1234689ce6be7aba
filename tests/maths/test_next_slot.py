"""When the next slot gets free, and for how long it pays to wait for it: numbers reckoned by hand."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from eclectus.maths.backlog_wait import residual_seconds
from eclectus.maths.next_slot import Life, NextSlot

TWENTY = Life(7.0, 20.0, 1.0)  # exponential, so its age says nothing


def test_golden_three_slots_of_20_seconds() -> None:
    found = NextSlot([[TWENTY]] * 3)  # the first ends at 3/20 a second
    assert found.chance(5.0) == pytest.approx(0.52763, abs=1e-5)  # 1 - exp(-.75)
    assert found.expected_seconds == pytest.approx(20 / 3, rel=3e-3)


def test_golden_age_counts_where_run_times_are_alike() -> None:
    # C = .5: k = .5^-1.086 = 2.1228, b = 10 / Gamma(1.4711) = 11.291.
    # Aged 10: H(12) - H(10) = 1.1381 - .7727 = .3654; new: H(2) = .0254
    assert NextSlot([[Life(10.0, 10.0, 0.25)]]).chance(2.0) == pytest.approx(0.3061, abs=5e-4)
    assert NextSlot([[Life(0.0, 10.0, 0.25)]]).chance(2.0) == pytest.approx(0.0251, abs=5e-4)


def test_golden_two_that_must_both_end() -> None:
    pair = NextSlot([[Life(0.0, 10.0, 1.0), Life(0.0, 10.0, 1.0)]])
    assert pair.chance(5.0) == pytest.approx(0.15482, abs=1e-5)  # (1 - exp(-.5))^2
    assert pair.expected_seconds == pytest.approx(15.0, rel=3e-3)  # 10 (1 + 1/2)
    beside_a_single = NextSlot([[Life(0.0, 10.0, 1.0)] * 2, [TWENTY]])
    assert beside_a_single.chance(5.0) == pytest.approx(1 - 0.84518 * 0.77880, abs=1e-4)


@pytest.mark.parametrize(("variation", "rel"), [(0.25, 0.02), (0.5, 0.02), (1.0, 0.01), (2.0, 0.1)])
def test_over_all_ages_what_is_left_is_the_residual_of_other_formulas(variation: float, rel: float) -> None:
    ages = np.arange(0.25, 300.0, 0.5)
    reached = NextSlot([[Life(0.0, 10.0, variation)]]).missing(ages)
    left = [NextSlot([[Life(age, 10.0, variation)]]).expected_seconds for age in ages.tolist()]
    mean = float((np.array(left) * reached).sum() / reached.sum())
    assert mean == pytest.approx(residual_seconds(10.0, variation), rel=rel)


@pytest.mark.parametrize(("gain", "expected"), [(7.0, 5.0), (6.0, 0.0), (inf, 5.0), (0.0, 0.0)])
def test_golden_where_age_says_nothing_all_of_the_wait_pays_or_none(gain: float, expected: float) -> None:
    # net(w) = (1 - exp(-.15 w)) (g - 20/3)
    assert NextSlot([[TWENTY]] * 3).best_wait(gain, 5.0) == expected


def test_golden_a_wait_ends_when_what_runs_gets_less_likely_to_end() -> None:
    # k = .5, b = 10 / Gamma(3) = 5: h(t) = .1 sqrt(5 / t), which is 1 / 5 at 1.25
    assert NextSlot([[Life(0.0, 10.0, 4.0)]]).best_wait(5.0, 5.0) == 1.25


def test_where_no_task_ends_no_wait_pays() -> None:
    found = NextSlot([])
    assert (found.never, found.chance(1e9), found.expected_seconds) == (True, 0.0, inf)
    assert found.best_wait(inf, 5.0) == found.best_wait(1e9, 5.0) == 0.0


@pytest.mark.parametrize("variation", [0.0, 25.0])
@pytest.mark.parametrize("age", [-1.0, 0.0, 1e7])
def test_it_is_a_probability_whatever_is_known(variation: float, age: float) -> None:
    missing = NextSlot([[Life(age, 1e-3, variation)], [TWENTY]]).missing(np.array([0.0, 1.0, 1e9]))
    assert missing[0] == pytest.approx(1.0)
    assert 0.0 <= missing[2] <= missing[1] <= 1.0
