"""NodeResourcesBalancedAllocation: how much the pod evens out, or unbalances, the use of cpu and memory.

Utilisation is of requests alone, without defaults for containers that request nothing. A pod that requests
neither has no such score. As in Kubernetes 1.36, a node with the pod is compared with it without the pod.
"""

from __future__ import annotations

import numpy as np

from eclectus.feasibility.scores.whole import MOST, Ints

HALF = MOST // 2


def balanced_allocation(allocatable: Ints, used: Ints, requested: Ints) -> Ints:
    """The score of nodes with such amounts of cpu and memory, shapes [nodes, 2]; `requested` [2]: by the pod.

    About 75 where the pod changes little, up to 100 where it evens out, 50 where it unbalances.
    """
    change = _balance(allocatable, used + requested) - _balance(allocatable, used)
    return HALF + (HALF + change) // 2


def _balance(allocatable: Ints, used: Ints) -> Ints:
    """100 where both are used to equal shares; 50 where one is used up and the other not at all."""
    exists = allocatable > 0
    shares = np.minimum(used / np.where(exists, allocatable, 1), 1.0)
    deviation = np.where(exists.all(axis=1), np.abs((shares[:, 0] - shares[:, 1]) / 2), 0.0)
    return ((1.0 - deviation) * MOST).astype(np.int64)
