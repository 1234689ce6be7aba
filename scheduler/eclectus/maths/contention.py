"""Demand over supply of sets of constraints: the Constraint Resource Vector (CRV) of Phoenix (ICDCS 2017).

    CRV(c) = demand(c) / supply(c)

supply(c): free slots on N(c), the nodes that satisfy all constraints of the set c. demand(c): tasks that have
not started and may run on nodes of N(c) only. The paper's formula is not public; this one takes sets whole
(joint), because few nodes may satisfy two constraints of which each is satisfied by many. A set is known by
its nodes: what may run only inside N(c) demands of c, whether it asks for more or for something else.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats

Mask = NDArray[np.bool_]

LEAST_SUPPLY = 1.0  # slots: a set without a free slot is as contended as its demand is long


def contention(nodes: Mask, tasks: Floats, free_slots: Floats) -> Floats:
    """The CRV of every set, shape [sets].

    `nodes`: whether a node satisfies a set, shape [sets, nodes]. `tasks`: unstarted tasks of exactly this
    set, shape [sets]. `free_slots`: on its nodes, shape [sets].
    """
    return demand_within(nodes, tasks) / np.maximum(free_slots, LEAST_SUPPLY)


def demand_within(nodes: Mask, tasks: Floats) -> Floats:
    """Unstarted tasks of all sets whose nodes lie inside those of each set, shape [sets]; O(sets^2 nodes)."""
    bits = np.packbits(nodes, axis=1)
    return np.array([tasks[~(bits & ~outer).any(axis=1)].sum() for outer in bits])
