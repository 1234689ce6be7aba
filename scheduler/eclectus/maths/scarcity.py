"""Scarcity: prices of nodes by what those want them for that may run on few others, and contention.

    price[n] = sum over the sets c with n in N(c) of demand(c) / supply(c)

N(c): the nodes that satisfy a set of constraints c. Demand and supply are amounts of several resources, and
their ratio is that of the scarcest one. A set adds the same to all of its own nodes, so one price serves all
tasks: for each it compares what only others want.

Ratios are added as whole numbers of `UNIT`. So a price that is kept up to date by differences is exactly that
which is summed afresh, and nodes that satisfy the same sets have equal prices.
"""

from math import inf

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats

UNIT = 2.0**-10  # of a ratio: far below what any decision distinguishes
MOST_RATIO = 4.0  # a longer backlog makes a node no scarcer, nor does a pod that requests an absurd amount

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def scarcity(demand: Floats, supply: Floats) -> Floats:
    """Demand over supply of the scarcest resource, 0..MOST_RATIO, shape [sets] of two [sets, resources].

    A resource of which the nodes of a set have nothing does not count: what needs it runs nowhere.
    """
    return np.asarray(np.minimum(_ratios(demand, supply).max(axis=1, initial=0.0), MOST_RATIO))


def scarcest(demand: Floats, supply: Floats) -> int:
    """Of which resource demand over supply is greatest, the first of equals; both of shape [resources]."""
    return int(_ratios(demand, supply).argmax())


def _ratios(demand: Floats, supply: Floats) -> Floats:
    return np.divide(demand, supply, out=np.zeros_like(demand), where=supply > 0)


def in_units(ratio: float) -> int:
    """A ratio as a whole number of `UNIT`."""
    return round(ratio / UNIT)


def move(units: Integers, before: Mask, amount_before: int, after: Mask, amount: int) -> None:
    """Take back what a set added to its nodes before, and add what it adds to them now; all shapes [rows].

    `before` and `after` may be the same array, which costs one addition.
    """
    if before is after:
        np.add(units, amount - amount_before, out=units, where=after)
        return
    np.subtract(units, amount_before, out=units, where=before)
    np.add(units, amount, out=units, where=after)


def price_to_supply(price: Floats, supply: Floats, needed: float) -> float:
    """The least price up to which nodes supply what is needed; inf if all nodes together do not.

    `price` and `supply`: of each node, shape [nodes].
    """
    order = np.argsort(price, kind="stable")
    at = int(np.searchsorted(np.cumsum(supply[order]), needed))
    return float(price[order[at]]) if at < len(order) else inf


# Demand over supply of sets of constraints: the Constraint Resource Vector (CRV) of Phoenix (ICDCS 2017).
#
#     CRV(c) = demand(c) / supply(c)
#
# supply(c): free slots on N(c), the nodes that satisfy all constraints of the set c. demand(c): tasks that
# have not started and may run on nodes of N(c) only. The paper's formula is not public; this one takes sets
# whole (joint), because few nodes may satisfy two constraints of which each is satisfied by many. A set is
# known by its nodes: what may run only inside N(c) demands of c, whether it asks for more or for something
# else.

LEAST_SUPPLY = 1.0  # slots: a set without a free slot is as contended as its demand is long


def contention(nodes: Mask, tasks: Floats, free_slots: Floats) -> Floats:
    """The CRV of every set, shape [sets].

    `nodes`: whether a node satisfies a set, shape [sets, nodes]. `tasks`: unstarted tasks of exactly this
    set, shape [sets]. `free_slots`: on its nodes, shape [sets].
    """
    return demand_within(nodes, tasks) / np.maximum(free_slots, LEAST_SUPPLY)


def estimated_waits(nodes: Mask, work: Floats, slots: Floats) -> Floats:
    """How long what is queued for the nodes of every set keeps their slots busy, seconds, shape [sets].

    `work`: seconds that unstarted tasks of exactly this set take, `slots`: on its nodes, used or not; both of
    shape [sets]. What arrives meanwhile and the rest of what runs do not count: they are as long for all.
    """
    return demand_within(nodes, work) / np.maximum(slots, LEAST_SUPPLY)


def demand_within(nodes: Mask, tasks: Floats) -> Floats:
    """Unstarted tasks of all sets whose nodes lie inside those of each set, shape [sets]; O(sets^2 nodes)."""
    bits = np.packbits(nodes, axis=1)
    return np.array([tasks[~(bits & ~outer).any(axis=1)].sum() for outer in bits])
