"""What sibling pools are entitled to: published examples, and the formula itself."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.maths.pool_shares import level_shares


def shares(total, *pools):
    """Of pools given as (demand, minimum, weight)."""
    return level_shares(total, *zip(*pools, strict=True)) if pools else level_shares(total, [], [], [])


@pytest.mark.parametrize(
    ("total", "demands", "expected"),
    [(40, (100, 50, 30, 20), (10, 10, 10, 10)), (40, (100, 50, 11, 3), (13, 13, 11, 3))],
)
def test_pools_of_equal_weight_share_alike_up_to_their_demand(total, demands, expected):
    assert shares(total, *((demand, 0, 1) for demand in demands)) == pytest.approx(list(expected))


@pytest.mark.parametrize(
    ("total", "pools", "expected"),
    [
        (40, ((100, 20, 1), (10, 20, 1), (10, 0, 1), (3, 2, 1)), (20, 10, 7, 3)),  # Hadoop's own test
        (45, ((100, 0, 2), (50, 0, 1), (30, 0, 1), (20, 0, 0.5)), (20, 10, 10, 5)),  # likewise
        (4, ((9, 0, 1), (9, 0, 2), (9, 0, 0.5)), (4 / 3.5, 8 / 3.5, 2 / 3.5)),  # likewise
        (48, ((60, 15, 1), (40, 0, 3), (8, 8, 2)), (15, 25, 8)),
        (43, ((3, 0, 1), (50, 0, 1), (50, 0, 2)), (3, 40 / 3, 80 / 3)),
    ],
)
def test_minima_and_weights(total, pools, expected):
    assert shares(total, *pools) == pytest.approx(list(expected))


def test_jobs_of_a_pool_share_what_it_has():
    """Hadoop's own test, with a second job in the third pool."""
    *_, third = shares(4, (9, 0, 1), (9, 0, 2), (9, 0, 0.5))
    assert shares(third, (9, 0, 1), (9, 0, 1)) == pytest.approx([0.2857, 0.2857], abs=1e-4)


def test_minima_beyond_the_total_are_scaled_as_far_as_they_are_in_demand():
    assert shares(40, (100, 30, 1), (100, 20, 1)) == pytest.approx([24, 16])
    assert shares(40, (100, 30, 1), (10, 90, 1)) == pytest.approx([30, 10])


def test_a_pool_of_weight_0_gets_its_minimum_and_what_is_left():
    assert shares(26, (20, 0, 1), (20, 0, 0)) == pytest.approx([20, 6])
    assert shares(26, (40, 0, 1), (20, 5, 0)) == pytest.approx([21, 5])
    assert shares(26, (20, 0, 0), (20, 0, 0)) == pytest.approx([13, 13]), "all of weight 0"


def test_without_pools_or_demand_nothing_is_shared():
    assert shares(40) == []
    assert shares(1, *[(9, 0, 1)] * 4) == pytest.approx([0.25] * 4)
    assert shares(40, (0, 9, 1), (0, 0, 0)) == [0, 0]
    assert shares(0, (5, 5, 1), (5, 0, 0)) == [0, 0]


POOLS = st.lists(st.tuples(*[st.integers(0, 50)] * 2, st.integers(0, 4)), min_size=1, max_size=8)


@given(st.integers(0, 120), POOLS)
def test_the_level_is_the_one_of_the_formula(total, pools):
    """By bisection, as Hadoop finds it, of those that have a weight."""
    found = shares(total, *pools)
    assert sum(found) == pytest.approx(min(total, sum(demand for demand, *_ in pools)))
    assert all(-1e-9 <= share <= demand + 1e-9 for share, (demand, *_) in zip(found, pools, strict=True))
    least = [min(demand, minimum) for demand, minimum, _ in pools]
    if sum(least) >= total:
        return
    assert all(share >= minimum - 1e-9 for share, minimum in zip(found, least, strict=True))
    heavy = [(*each, share) for each, share in zip(pools, found, strict=True) if each[2]]
    low, high = Fraction(0), Fraction(100)
    for _ in range(60):
        level = (low + high) / 2
        given_ = sum(min(demand, max(level * weight, min(m, demand))) for demand, m, weight, _ in heavy)
        light = sum(each for each, (*_, weight) in zip(least, pools, strict=True) if not weight)
        low, high = (level, high) if given_ + light < total else (low, level)
    for demand, minimum, weight, share in heavy:
        assert share == pytest.approx(float(min(demand, max(high * weight, min(minimum, demand)))))
