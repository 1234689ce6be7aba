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

from collections.abc import Callable
from functools import partial
from math import inf
from random import Random
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.scalars import Scalars, scalars
from eclectus.feasibility.task_class import NodeScalars
from eclectus.framework import Action, Enqueue, Floats, Rows, Speeds, Task, Unschedulable, View
from eclectus.maths import numbers
from eclectus.maths.numbers import Arithmetic, Value
from eclectus.maths.sampling import draw_marked, draw_rows, draws_proportional

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


# Placement by sampling: draw a few nodes, compare them, join the node queue of the best.
#
# Q. Wu, Z. Liu, "Rosella", 2020: two draws in proportion to speed, with replacement (PPoT). The draw (query
# rule) and the comparison (assignment rule, the keys) are independent settings. Using speeds in both is
# better than using them in one (Gardner et al., "Scalable load balancing in the presence of heterogeneous
# servers", Performance Evaluation, 2021). A node with an effective rate of 0 is drawn only where all nodes
# that may run the task have it.

Query = Callable[[Random, Rows, Speeds, int], list[int]]
"""query(rng, rows, speeds, count): `count` of `rows`, with replacement; empty if all rates are 0."""
Cost = Callable[[Arithmetic[float], NodeScalars, Scalars[float], int], float]
"""cost(numbers, nodes, rate, row): the cost of one feasible node; the least wins."""


def proportional(rng: Random, rows: Rows, speeds: Speeds, count: int) -> list[int]:
    """Draw with probability in proportion to the rate of this workload, as in the paper."""
    return draws_proportional(rng, rows, speeds.rate, speeds.most, count)


def uniform(rng: Random, rows: Rows, speeds: Speeds, count: int) -> list[int]:
    """Draw uniformly from the nodes with a rate above 0."""
    works = speeds.rate > 0.0
    drawn = (draw_marked(rng, rows, works) for _ in range(count))
    return [row for row in drawn if row is not None]


QUERIES: dict[str, Query] = {"proportional": proportional, "uniform": uniform}


class Sampling:
    """Places one task at a time, by a query rule and an assignment rule."""

    def __init__(self, query: Query, choices: int, distinct: bool, cost: Cost) -> None:
        self._query, self._cost = query, partial(cost, numbers)
        self._choices, self._distinct = choices, distinct

    def answer(self, view: View, task: Task) -> Action:
        """Enqueue the task at the drawn node of least cost; the first drawn wins a tie."""
        task_class = view.task_class(task)
        rows, speeds = task_class.waitable_rows, view.speeds(task_class)
        if not len(rows):
            return Unschedulable(task)
        if self._distinct:
            drawn = self._draw_distinct(view, rows, speeds)
        else:
            drawn = self._query(view.rng, rows, speeds, self._choices)
        drawn = drawn or list(draw_rows(view.rng, rows, self._choices, self._distinct))
        if len(drawn) == 1:
            return Enqueue(task, drawn[0])
        return Enqueue(task, min(drawn, key=partial(self._cost, task_class.scalars, scalars(speeds.rate))))

    def _draw_distinct(self, view: View, rows: Rows, speeds: Speeds) -> list[int]:
        drawn: list[int] = []
        while len(drawn) < self._choices and (one := self._query(view.rng, rows, speeds, 1)):
            drawn += one
            rows = rows[rows != one[0]]
        return drawn
