"""Demand over supply of sets of constraints, taken whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.maths.scarcity import contention, demand_within


def test_the_ratio_of_two_constraints_together_shows_what_neither_ratio_shows() -> None:
    """Of 100 nodes with one free slot each, 50 have an SSD, 40 a new kernel, and only 5 have both."""
    ssd, kernel = np.arange(100) < 50, (np.arange(100) >= 45) & (np.arange(100) < 85)
    nodes = np.array([ssd, kernel, ssd & kernel])
    free = nodes.sum(axis=1).astype(float)
    ratios = contention(nodes, np.array([20.0, 10.0, 8.0]), free)
    assert ratios == pytest.approx([28 / 50, 18 / 40, 8 / 5])


def test_a_set_without_a_free_slot_has_a_finite_ratio() -> None:
    assert contention(np.ones((1, 3), dtype=bool), np.array([7.0]), np.zeros(1)).tolist() == [7.0]


@given(st.lists(st.tuples(st.frozensets(st.integers(0, 11)), st.integers(0, 9)), min_size=1, max_size=8))
def test_demand_is_that_of_all_sets_whose_nodes_lie_inside(sets: list[tuple[frozenset[int], int]]) -> None:
    nodes = np.array([[node in each for node in range(12)] for each, _ in sets])
    plain = [sum(tasks for inner, tasks in sets if inner <= outer) for outer, _ in sets]
    assert demand_within(nodes, np.array([float(tasks) for _, tasks in sets])).tolist() == plain
