"""NodeResourcesFit, strategy LeastAllocated: the mean free share of cpu and memory after placing the pod.

A container without requests counts as 100m and 200 MiB. A resource of which a node has none is left out.
"""

from __future__ import annotations

import numpy as np

from eclectus.feasibility.scores.whole import MOST, Ints


def least_allocated(allocatable: Ints, requested: Ints) -> Ints:
    """The score of nodes with these amounts, shapes [nodes, resources]; `requested` with the pod."""
    exists = allocatable > 0
    free = np.where(exists, np.maximum(allocatable - requested, 0), 0)
    shares = MOST * free // np.where(exists, allocatable, 1)
    score: Ints = shares.sum(axis=1) // np.maximum(exists.sum(axis=1), 1)
    return score
