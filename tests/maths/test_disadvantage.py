"""Worths and loads of classes, and where they are at a disadvantage: closed forms, and a linear program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eclectus.maths.replanning import disadvantage, improved_worth, plain_worth
from stability import balance

Floats = NDArray[np.float64]
SPECIALISTS = np.array([[4.0, 1.0], [1.0, 4.0]])
TEN = np.array([10.0, 10.0])


def solved(pace: Floats, nodes: Floats, arrivals: Floats, steps: int = 400) -> tuple[Floats, Floats]:
    """Worths and loads from nothing."""
    return improved_worth(plain_worth(pace, nodes), pace, nodes, arrivals, steps)


MODELS = st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))


def model(shape: tuple[int, int, int]) -> tuple[Floats, Floats, Floats]:
    """Random paces, numbers of nodes and arrivals of this many classes and groups, by a seed."""
    classes, groups, seed = shape
    rng = np.random.default_rng(seed)
    pace = np.exp(rng.normal(0.0, 1.0, (classes, groups)))
    return pace, rng.integers(1, 9, groups).astype(float), rng.uniform(0.1, 5.0, classes)


@given(MODELS)
@example((5, 1, 134217727))  # a single group of nodes: 7.3 % from dual
@settings(deadline=None, max_examples=30)
def test_loads_are_that_of_the_linear_program(shape: tuple[int, int, int]) -> None:
    pace, nodes, arrivals = model(shape)
    rho = balance((pace * nodes).T, arrivals).load
    worth, load = solved(pace, nodes, arrivals)
    assert load == pytest.approx(np.full(len(load), rho), rel=0.05)
    best = (worth[:, None] * pace).max(axis=0)
    assert 0.9 * rho <= arrivals @ worth / (nodes @ best) <= rho * (1 + 1e-9), "not dual to it"


@given(MODELS)
@settings(deadline=None, max_examples=30)
def test_related_nodes_have_no_price(shape: tuple[int, int, int]) -> None:
    """Every node does all classes at the same ratio of paces: nobody is in the way of anybody."""
    pace, nodes, arrivals = model(shape)
    pace = pace[:, :1] * pace[:1]
    worth, load = solved(pace, nodes, arrivals)
    alone = arrivals / (pace * nodes).sum(axis=1)
    assert load == pytest.approx(np.full(len(load), alone.sum()), rel=1e-3)
    assert not disadvantage(worth, pace).any()


def test_who_has_time_left_helps_out_and_the_others_do_not() -> None:
    """Right does 40 r of 40 sort, left its 20 web in half its time: web is worth a quarter of sort."""
    worth, load = solved(SPECIALISTS, TEN, np.array([20.0, 40.0]))
    assert worth[0] / worth[1] == pytest.approx(0.25, rel=0.05)
    assert load == pytest.approx([0.9, 0.9], rel=0.01)
    found = disadvantage(worth, SPECIALISTS)
    assert found[1].tolist() == [0.0, 0.0]
    assert found[0] == pytest.approx([0.0, 2 * (1 - 1 / 16) - 1], abs=0.02)


def test_a_few_steps_follow_a_small_change_of_the_mix() -> None:
    before, _ = solved(SPECIALISTS, TEN, np.array([20.0, 40.0]))
    changed = np.array([22.0, 40.0])
    _, load = improved_worth(before, SPECIALISTS, TEN, changed, 8)
    assert load == pytest.approx(solved(SPECIALISTS, TEN, changed)[1], rel=0.02)


def test_classes_that_share_no_nodes_have_loads_of_their_own() -> None:
    pace = np.array([[1.0, 0.0], [0.0, 1.0]])
    _, load = solved(pace, TEN, np.array([2.0, 9.0]))
    assert load == pytest.approx([0.2, 0.9])


def test_less_than_a_twofold_disadvantage_does_not_count() -> None:
    pace = np.array([[1.0, 1.0, 1.0], [1.0, 1.9, 4.0]])
    assert disadvantage(np.ones(2), pace) == pytest.approx(np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.0]]))
