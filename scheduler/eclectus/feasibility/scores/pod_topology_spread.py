"""PodTopologySpread: the fewer pods a constraint with ScheduleAnyway counts in a node's domain, the better.

Counts of small numbers of domains are weighed down, because a domain of few has more pods. Up to `maxSkew`
is added for each constraint, so that with a greater one the same difference of counts matters less.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from eclectus.feasibility.scores.whole import MOST, Ints

Constraint = tuple[Ints, Ints | int, float]
"""Of one constraint: the count in the domain of each node, `maxSkew`, and the weight of the counts.

`maxSkew` may be given by node: of one with a count of 0 and a `maxSkew` of 1 the constraint says nothing.
"""


def weight_of(domains: int) -> float:
    """The weight of counts where so many domains have a node that fits."""
    return log(domains + 2)


def crowding(constraints: Sequence[Constraint], nodes: int) -> Ints:
    """How many pods are in the domains of each of so many nodes, weighed and rounded half up."""
    total = np.zeros(nodes)
    for counts, max_skew, weight in constraints:
        total += counts * weight + (max_skew - 1)
    return np.floor(total + 0.5).astype(np.int64)


def pod_topology_spread(crowding: Ints, least: int, most: int) -> Ints:
    """The score of nodes that have all topology keys; the others have 0.

    `least` and `most`: of the crowding of those that fit.
    """
    if not most:
        return np.full(len(crowding), MOST, dtype=np.int64)
    return MOST * (most + least - crowding) // most
