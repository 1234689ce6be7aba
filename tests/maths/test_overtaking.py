"""Delays by tasks that came later and went first, against a sum over all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eclectus.policies.order.phoenix import Delays


def test_only_those_count_that_came_later_than_the_first() -> None:
    delays = Delays()
    delays.add(5.0, 1.0)
    delays.add(9.0, 10.0)
    assert delays.of_first(1.0) == 11.0
    assert delays.of_first(5.0) == 10.0
    assert delays.of_first(20.0) == 0.0


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100), st.floats(0, 10))))
def test_delays_are_those_of_a_plain_sum(steps: list[tuple[bool, float, float]]) -> None:
    """A step is an overtaking, or asks for the delay of a first task that came no earlier than the last."""
    delays, overtakers, first = Delays(), list[tuple[float, float]](), 0.0
    for asks, value, seconds in steps:
        if asks:
            first = max(first, value)
            expected = sum(each for arrived, each in overtakers if arrived > first)
            assert delays.of_first(first) == pytest.approx(expected, abs=1e-9)
        else:
            overtakers.append((value, seconds))
            delays.add(value, seconds)
