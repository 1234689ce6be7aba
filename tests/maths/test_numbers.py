"""The scalar functions give what numpy gives, at 0 and infinity too."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest

from eclectus.maths import numbers

VALUES = (-inf, -2.0, -0.0, 0.0, 1e-300, 3.0, inf)


@pytest.mark.parametrize("function", ["maximum", "divide"])
@pytest.mark.parametrize(("one", "other"), [*product(VALUES, (0.0, 0.5, 7.0, inf))])
def test_a_function_gives_what_numpy_gives(function: str, one: float, other: float) -> None:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        expected = getattr(np, function)(np.array([one]), np.array([other]))
    assert np.array_equal([getattr(numbers, function)(one, other)], expected, equal_nan=True)


def test_where_selects_by_the_condition() -> None:
    assert (numbers.where(True, 1, 2), numbers.where(False, 1, 2)) == (1, 2)
