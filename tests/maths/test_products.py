"""Sums of products, one by one and row by row."""

from __future__ import annotations

import numpy as np
import pytest

from eclectus.maths.numbers import sum_of_products


def test_one_sum() -> None:
    found = sum_of_products(np.array([1.0, 2.0, 3.0]), np.array([4, 5, 6]))
    assert float(found) == 32.0


def test_one_sum_for_each_row() -> None:
    found = sum_of_products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 1.0]))
    assert found.tolist() == [12.0, 34.0]


def test_nothing_sums_to_zero() -> None:
    assert float(sum_of_products(np.zeros(0), np.zeros(0))) == 0.0


def test_many_numbers_are_summed_as_exactly_as_needed() -> None:
    rng = np.random.default_rng(1)
    values, weights = rng.random(20_000), rng.random(20_000)
    exact = sum(map(float, values * weights))
    assert float(sum_of_products(values, weights)) == pytest.approx(exact, rel=1e-12)
