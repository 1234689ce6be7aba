"""The sum of products, without BLAS.

numpy hands `@`, `dot` and the like to OpenBLAS, which shares products of more than 10,000 numbers among
threads. Where other processes use the cores, the calling thread then waits up to 60 ms for a product of 3 µs,
and the last digits, so perhaps a decision, depend on the number of cores. `einsum` does neither.
`tests/house/test_no_blas.py` keeps the rest of the sources to this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats


def sum_of_products(values: Floats, weights: NDArray[Any]) -> Any:
    """The sum over the last axis of values times weights: one number, or one for each row of `values`."""
    return np.einsum("...n,n->...", values, weights)
