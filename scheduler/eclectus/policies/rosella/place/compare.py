"""Three keys by which nodes are compared. The least key wins; a tie goes to the faster node.

For a node of k slots, each of which serves `rate` tasks a second, with q tasks running or queued there:

    sq    q / k                              the paper's rule: shortest queue
    wait  max(0, q - k + 1) / (k rate idle)  time until a slot is free; 0 on every node with a free slot
    sed   wait + 1 / rate                    shortest expected delay: time until the task has ended

`idle` is the share of the node that background load leaves, 1 if none is known. With k = 1 and no background
load the keys are q, q / mu and (q + 1) / mu. q - k + 1 is the overflow of the task's class.

Each key is written once, for one node and for many. For one node: `at` is a row, `nodes` are a class's
scalars, `m` is the module maths/numbers.py. For many: `at` is an array of rows, `nodes` is the class itself,
`m` is numpy.
"""

from __future__ import annotations

from math import inf
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from eclectus.framework import Floats
from eclectus.maths.numbers import Arithmetic, Value

DEAD_RATE = 1e-9  # tasks a second, with which a dead node counts: behind all others, but not excluded

At = TypeVar("At")
At_contra = TypeVar("At_contra", contravariant=True)
Item_co = TypeVar("Item_co", covariant=True)
Value_co = TypeVar("Value_co", float, Floats, covariant=True)


class Column(Protocol[At_contra, Item_co]):
    """One number for each node. `At`: a row (int), which gives one number, or an array of rows."""

    def __getitem__(self, at: At_contra, /) -> Item_co: ...


class Nodes(Protocol[At_contra, Value_co]):
    """What costs are computed from: a TaskClass, or its scalars."""

    @property
    def feasible(self) -> Column[At_contra, bool | NDArray[np.bool_]]:
        """Whether the node may run a task of the class."""

    @property
    def fits_now(self) -> Column[At_contra, bool | NDArray[np.bool_]]:
        """Whether a task of the class fits now."""

    @property
    def overflow(self) -> Column[At_contra, Value_co]:
        """Tasks of the class that must end before one more fits; 0 or less if one fits."""

    @property
    def service_slots(self) -> Column[At_contra, Value_co]:
        """Slots of the class that long-running pods leave."""

    @property
    def background_free(self) -> Column[At_contra, Value_co]:
        """Share of the node that background load leaves, 0..1."""

    @property
    def preference_score(self) -> Column[At_contra, Value_co]:
        """How well the node meets the pod's preferences, 0..1."""


class Key(Protocol):
    """A key of nodes; `rate` in tasks a second in one slot, indexed by row as `nodes` is."""

    def __call__(
        self, m: Arithmetic[Value], nodes: Nodes[At, Value], rate: Column[At, Value], at: At, /
    ) -> Value:
        """The key of one node, or of each of many."""
        ...


def shortest_queue(
    m: Arithmetic[Value], nodes: Nodes[At, Value], rate: Column[At, Value], at: At, /
) -> Value:
    """Tasks per slot; inf where long-running pods leave no slot."""
    del rate
    slots = nodes.service_slots[at]
    queue = m.maximum(nodes.overflow[at] + slots - 1.0, 0.0)
    return m.where(slots > 0, m.divide(queue, slots), inf)


def least_wait(m: Arithmetic[Value], nodes: Nodes[At, Value], rate: Column[At, Value], at: At, /) -> Value:
    """Seconds until one more task of the class fits; inf where no ending task can make room for it."""
    missing = m.where(nodes.fits_now[at], 0.0, m.maximum(nodes.overflow[at], 1.0))
    # With a free slot the wait is 0, even at speed 0; the division would give nan.
    return m.where(
        missing > 0, m.divide(missing, nodes.service_slots[at] * rate[at] * nodes.background_free[at]), 0.0
    )


def shortest_delay(
    m: Arithmetic[Value], nodes: Nodes[At, Value], rate: Column[At, Value], at: At, /
) -> Value:
    """Seconds until the task would have ended."""
    return least_wait(m, nodes, rate, at) + m.divide(1.0, rate[at])


KEYS: dict[str, Key] = {"sq": shortest_queue, "wait": least_wait, "sed": shortest_delay}
