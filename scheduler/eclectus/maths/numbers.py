"""Arithmetic of formulas that serve one node and thousands of nodes: scalar versions of numpy functions.

A formula gets its arithmetic as an argument: numpy itself for arrays, this module for plain floats, which is
twenty times as fast as numpy on arrays of one element. Division by 0 gives inf or nan, as in numpy.
"""

from math import copysign, inf, nan
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Value = TypeVar("Value", float, Floats)
"""What a formula computes: one number, or an array of numbers."""


class Arithmetic(Protocol[Value]):
    """What a formula needs beside operators: this module for floats, `numpy` for arrays."""

    def where(
        self, condition: bool | NDArray[np.bool_], one: Value | float, other: Value | float, /
    ) -> Value:
        """`one` where the condition holds, else `other`; both are evaluated."""

    def maximum(self, one: Value | float, other: Value | float, /) -> Value:
        """The larger of two."""

    def divide(self, one: Value | float, by: Value | float, /) -> Value:
        """The quotient; inf or nan where the divisor is 0."""


def where(condition: object, one: float, other: float) -> float:
    """`one` if the condition is true, else `other`; both are evaluated."""
    return one if condition else other


def maximum(one: float, other: float) -> float:
    """The larger of two."""
    return one if one > other else other


def divide(one: float, by: float) -> float:
    """one / by; inf, -inf or nan if `by` is 0."""
    if by:
        return one / by
    return copysign(inf, one) if one else nan


# The sum of products, without BLAS.
#
# numpy hands `@`, `dot` and the like to OpenBLAS, which shares products of more than 10,000 numbers among
# threads. Where other processes use the cores, the calling thread then waits up to 60 ms for a product of 3
# µs, and the last digits, so perhaps a decision, depend on the number of cores. `einsum` does neither.
# `tests/house/test_no_blas.py` keeps the rest of the sources to this.


def sum_of_products(values: Floats, weights: NDArray[Any]) -> Any:
    """The sum over the last axis of values times weights: one number, or one for each row of `values`."""
    return np.einsum("...n,n->...", values, weights)


def upper_median(values: Floats) -> float:
    """The middle one in ascending order, of an even number the upper one; numpy.median imports a package."""
    middle = len(values) // 2
    return float(np.partition(values, middle)[middle])
