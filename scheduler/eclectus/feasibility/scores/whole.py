"""What the scores have in common: their range, and DefaultNormalizeScore."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST = 100  # MaxNodeScore

Ints = NDArray[np.int64]


def share_of_most(values: Ints, most: int) -> Ints:
    """Each value as a share of the greatest, rounded down; the values themselves, all 0, where that is 0."""
    return MOST * values // most if most else values
