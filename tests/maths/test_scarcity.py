"""Node prices by scarcity: the example of overlapping sets, sums by differences, and what long work needs."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from eclectus.maths.scarcity import MOST_RATIO, UNIT, in_units, move, price_to_supply, scarcest, scarcity

ROWS = 12


def table(*rows: tuple[float, ...]) -> NDArray[np.float64]:
    return np.array(rows, dtype=float)


def test_the_joint_set_is_scarce_where_no_single_one_is() -> None:
    """100 nodes: ssd on 50, a new kernel on 40, both on 5; 20, 10 and 8 tasks want these."""
    demand, supply = table((20,), (10,), (8,)), table((50,), (40,), (5,))
    assert scarcity(demand, supply).tolist() == [0.4, 0.25, 1.6]


def test_the_scarcest_resource_counts() -> None:
    demand, supply = table((10, 3, 5)), table((100, 4, 0))
    assert scarcity(demand, supply).tolist() == [0.75]
    assert scarcest(demand[0], supply[0]) == 1


def test_a_set_without_nodes_or_with_an_absurd_demand_has_a_bounded_ratio() -> None:
    assert scarcity(table((5,), (1e30,)), table((0,), (1,))).tolist() == [0.0, MOST_RATIO]


changes = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.booleans(), min_size=ROWS, max_size=ROWS), st.floats(0, 5)),
    max_size=30,
)


@given(changes)
def test_prices_kept_by_differences_are_those_summed_afresh(
    steps: list[tuple[int, list[bool], float]],
) -> None:
    nothing = np.zeros(ROWS, dtype=bool)
    units, sets = np.zeros(ROWS, dtype=np.int64), dict.fromkeys(range(4), (nothing, 0))
    for which, nodes, ratio in steps:
        before, amount = sets[which]
        after = before if before.tolist() == nodes else np.array(nodes)
        sets[which] = after, in_units(ratio)
        move(units, before, amount, after, in_units(ratio))
    afresh = [sum(amount for mask, amount in sets.values() if mask[row]) for row in range(ROWS)]
    assert units.tolist() == afresh


def test_a_ratio_is_rounded_to_a_unit() -> None:
    assert in_units(0.3) * UNIT == pytest.approx(0.3, abs=UNIT / 2)


def test_cheap_nodes_are_those_that_supply_what_is_needed() -> None:
    price, supply = np.array([0.5, 0.1, 0.3, 0.3]), np.array([4.0, 2.0, 3.0, 3.0])
    assert [price_to_supply(price, supply, needed) for needed in (0, 2, 2.1, 8, 8.1, 12, 12.1)] == [
        0.1, 0.1, 0.3, 0.3, 0.5, 0.5, inf
    ]  # fmt: skip
