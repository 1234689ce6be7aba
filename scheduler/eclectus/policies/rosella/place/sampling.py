"""Placement by sampling: draw a few nodes, compare them, join the node queue of the best.

Q. Wu, Z. Liu, "Rosella", 2020: two draws in proportion to speed, with replacement (PPoT). The draw (query
rule) and the comparison (assignment rule, compare.py) are independent settings. Using speeds in both is
better than using them in one (Gardner et al., "Scalable load balancing in the presence of heterogeneous
servers", Performance Evaluation, 2021). A node with an effective rate of 0 is drawn only where all nodes that
may run the task have it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from eclectus.cluster.scalars import Scalars, scalars
from eclectus.feasibility.task_class import NodeScalars
from eclectus.framework import Action, Enqueue, Rows, Speeds, Task, Unschedulable, View
from eclectus.maths import numbers
from eclectus.maths.numbers import Arithmetic
from eclectus.maths.sampling import draw_marked, draw_rows, draws_proportional

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
