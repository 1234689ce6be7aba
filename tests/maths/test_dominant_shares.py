"""C3, dominant shares: the paper's example, a lie, bounds, and the properties that DRF guarantees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from eclectus.maths.fair_shares import dominant_shares

Floats = NDArray[np.float64]
AMOUNTS = st.one_of(st.just(0.0), st.floats(0.01, 100.0))


def floats(*rows: object) -> Floats:
    return np.array(rows, dtype=float)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Floats, Floats, Floats]:
    """Demands, weights and capacity; everybody demands something."""
    jobs, resources = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    demands = floats(*(draw(st.lists(AMOUNTS, min_size=resources, max_size=resources)) for _ in range(jobs)))
    assume((demands.max(axis=1) > 0.0).all())
    weights = floats(*draw(st.lists(st.floats(0.1, 10.0), min_size=jobs, max_size=jobs)))
    return (
        demands,
        weights,
        floats(*draw(st.lists(st.floats(0.5, 50.0), min_size=resources, max_size=resources))),
    )


def tasks(shares: Floats, demands: Floats) -> Floats:
    """How many tasks of this demand each share holds, shape [jobs]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(demands > 0.0, shares / demands, np.inf).min(axis=1)


def dominant(shares: Floats, capacity: Floats) -> Floats:
    return (shares / capacity).max(axis=1)


def test_the_papers_example() -> None:
    """9 CPU and 18 GB; A runs three tasks of <1, 4>, B two of <3, 1>; both have 2/3 of one resource."""
    demands, capacity = floats((1, 4), (3, 1)), floats(9, 18)
    shares = dominant_shares(demands, np.ones(2), capacity)
    assert tasks(shares, demands) == pytest.approx([3, 2])
    assert dominant(shares, capacity) == pytest.approx([2 / 3, 2 / 3])
    assert shares.sum(axis=0) == pytest.approx([9, 14])


def test_who_lies_gets_less() -> None:
    demands, claimed = floats((1, 2), (3, 1)), floats((1, 3), (3, 1))
    capacity = floats(100, 100)
    true = dominant_shares(demands, np.ones(2), capacity)
    lied = dominant_shares(claimed, np.ones(2), capacity)
    assert tasks(true, demands)[0] == pytest.approx(100 / 3)
    assert tasks(lied, demands)[0] == pytest.approx(25)


def test_who_does_not_need_what_is_used_up_goes_on() -> None:
    """Two share the CPUs; the third needs memory alone and gets all of it."""
    shares = dominant_shares(floats((1, 0), (1, 0), (0, 1)), np.ones(3), floats(10, 10))
    assert shares.tolist() == [[5, 0], [5, 0], [0, 10]]


def test_what_one_cannot_use_goes_to_the_others() -> None:
    demands, most = floats((1, 1), (1, 1), (1, 1)), floats((1, 1), (np.inf, np.inf), (np.inf, np.inf))
    shares = dominant_shares(demands, floats(1, 1, 2), floats(13, 13), most)
    assert shares.tolist() == [[1, 1], [4, 4], [8, 8]]


def test_a_bound_of_one_resource_does_not_bound_the_others() -> None:
    shares = dominant_shares(floats((1, 1)), np.ones(1), floats(10, 10), floats((2, np.inf)))
    assert shares.tolist() == [[2, 10]]


def test_a_job_without_demand_and_a_resource_without_capacity() -> None:
    shares = dominant_shares(floats((0, 0), (1, 5)), np.ones(2), floats(4, 0))
    assert shares.tolist() == [[0, 0], [4, 0]]
    assert dominant_shares(np.zeros((0, 2)), np.zeros(0), floats(1, 1)).shape == (0, 2)


@pytest.mark.parametrize(
    "wrong",
    [
        {"demands": floats((np.nan, 1))},
        {"demands": floats((np.inf, 1))},
        {"demands": floats((-1, 1))},
        {"capacity": floats(1, np.inf)},
        {"capacity": floats(1, np.nan)},
        {"weights": floats(0)},
        {"weights": floats(np.nan)},
        {"most": floats((np.nan, 1))},
        {"most": floats((-1, 1))},
    ],
)
def test_numbers_that_mean_nothing_are_refused(wrong: dict[str, Floats]) -> None:
    right = {"demands": floats((1, 1)), "weights": np.ones(1), "capacity": floats(1, 1)}
    with pytest.raises(ValueError, match="must"):
        dominant_shares(**right | wrong)


@settings(deadline=None, max_examples=50)
@given(cases())
def test_nobody_gets_less_than_with_a_part_of_every_resource(case: tuple[Floats, Floats, Floats]) -> None:
    """Sharing incentive."""
    demands, weights, capacity = case
    shares = dominant_shares(demands, weights, capacity)
    assert (dominant(shares, capacity) >= weights / weights.sum() - 1e-9).all()


@settings(deadline=None, max_examples=50)
@given(cases())
def test_nobody_would_rather_have_what_another_has(case: tuple[Floats, Floats, Floats]) -> None:
    """Envy-freeness, by weight: what another has, times one's own weight over his, holds no more tasks."""
    demands, weights, capacity = case
    shares = dominant_shares(demands, weights, capacity)
    own = tasks(shares, demands)
    for other in range(len(demands)):
        others = shares[other] * (weights / weights[other])[:, None]
        assert (tasks(others, demands) <= own * (1 + 1e-9)).all()


@settings(deadline=None, max_examples=50)
@given(cases())
def test_nobody_can_get_more_without_taking_it(case: tuple[Floats, Floats, Floats]) -> None:
    """Pareto efficiency: each needs some resource that is used up."""
    demands, weights, capacity = case
    shares = dominant_shares(demands, weights, capacity)
    used_up = shares.sum(axis=0) >= capacity * (1 - 1e-9)
    assert (shares.sum(axis=0) <= capacity * (1 + 1e-9)).all()
    assert ((demands > 0.0) & used_up).any(axis=1).all()


@settings(deadline=None, max_examples=50)
@given(cases())
def test_a_lie_about_ones_demand_does_not_pay(case: tuple[Floats, Floats, Floats]) -> None:
    demands, weights, capacity = case
    claimed = demands.copy()
    claimed[0] = claimed[0][::-1] + 0.5
    honest = tasks(dominant_shares(demands, weights, capacity), demands)[0]
    assert tasks(dominant_shares(claimed, weights, capacity), demands)[0] <= honest * (1 + 1e-9)


@settings(deadline=None, max_examples=50)
@given(cases())
def test_who_leaves_takes_nothing_from_the_others(case: tuple[Floats, Floats, Floats]) -> None:
    """Population monotonicity, which holds where everybody demands something of every resource."""
    demands, weights, capacity = case
    assume(len(demands) > 1)
    demands = np.maximum(demands, 0.01)
    before = tasks(dominant_shares(demands, weights, capacity), demands)[1:]
    after = tasks(dominant_shares(demands[1:], weights[1:], capacity), demands[1:])
    assert (after >= before * (1 - 1e-9)).all()


def test_who_leaves_may_take_something_from_those_who_need_few_resources() -> None:
    """The second shares the first resource with the third, which the first keeps from using more of it."""
    demands, capacity = floats((1, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)), floats(1, 1, 1)
    before = dominant_shares(demands, np.ones(4), capacity)
    after = dominant_shares(demands[1:], np.ones(3), capacity)
    assert before[2] == pytest.approx([0, 2 / 3, 0])
    assert after[1] == pytest.approx([0, 1 / 2, 0])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(0.1, 5.0), st.floats(0.0, 20.0)), min_size=1, max_size=8))
def test_one_resource_is_shared_max_min(jobs: list[tuple[float, float]]) -> None:
    """Against a dumb twin: repeatedly give the bound to whoever has one below an equal part."""
    weights, bounds = floats(*jobs).T
    shares = dominant_shares(np.ones((len(jobs), 1)), weights, floats(10), bounds[:, None])[:, 0]
    expected, free, left = np.zeros(len(jobs)), 10.0, set(range(len(jobs)))
    while left:
        level = free / sum(weights[at] for at in left)
        content = {at for at in left if bounds[at] < level * weights[at]}
        for at in content or left:
            expected[at] = bounds[at] if content else level * weights[at]
            free -= expected[at]
        left = left - content if content else set()
    assert shares == pytest.approx(expected)


@settings(deadline=None, max_examples=50)
@given(cases(), st.integers(0, 2**32 - 1))
def test_bounds_are_kept_and_what_is_left_is_useful_to_nobody(
    case: tuple[Floats, Floats, Floats], seed: int
) -> None:
    demands, weights, capacity = case
    most = np.random.default_rng(seed).uniform(0.0, 20.0, demands.shape)
    shares = dominant_shares(demands, weights, capacity, most)
    assert (shares <= most * (1 + 1e-12)).all()
    assert (shares.sum(axis=0) <= capacity * (1 + 1e-9)).all()
    full = shares >= np.where(demands > 0.0, most, 0.0) * (1 - 1e-9)
    used_up = shares.sum(axis=0) >= capacity * (1 - 1e-9)
    assert (full.all(axis=1) | ((demands > 0.0) & used_up & ~full).any(axis=1)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "holds",
    [
        test_nobody_gets_less_than_with_a_part_of_every_resource,
        test_nobody_would_rather_have_what_another_has,
        test_nobody_can_get_more_without_taking_it,
        test_a_lie_about_ones_demand_does_not_pay,
        test_who_leaves_takes_nothing_from_the_others,
    ],
)
def test_it_holds_in_more_cases(holds: Any) -> None:
    settings(max_examples=200)(given(cases())(holds.hypothesis.inner_test))()
