"""Choices by sampling: draw a few nodes, compare them, join the line of the best.

Q. Wu, Z. Liu, "Rosella", 2020: two draws in proportion to speed, with replacement (PPoT).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from eclectus.cluster.changelog import Rows
from eclectus.cluster.scalars import scalars
from eclectus.feasibility.class_arrays import NodeScalars
from eclectus.framework import Action, Enqueue, Speeds, Unschedulable, View
from eclectus.maths import numbers
from eclectus.model.objects import Task
from eclectus.policies.rosella.place.query import Query

Cost = Callable[[Any, NodeScalars, Any, int], float]
"""cost(numbers, nodes, rate, row): of one feasible node, least first."""


class Sample:
    """The answer to one task, by a query rule and an assignment rule."""

    def __init__(self, query: Query, choices: int, distinct: bool, cost: Cost) -> None:
        self._query, self._cost = query, partial(cost, numbers)
        self._choices, self._distinct = choices, distinct

    def answer(self, view: View, task: Task) -> Action:
        """The first drawn keeps the task unless a later one costs less."""
        task_class = view.task_class(task)
        rows, speeds = task_class.waitable_rows, view.speeds(task_class)
        if self._distinct:
            drawn = self._draw_distinct(view, rows, speeds)
        else:
            drawn = self._query(view.rng, rows, speeds, self._choices)
        if not drawn:
            return Unschedulable(task)
        if len(drawn) == 1:
            return Enqueue(task, drawn[0])
        return Enqueue(task, min(drawn, key=partial(self._cost, task_class.scalars, scalars(speeds.rate))))

    def _draw_distinct(self, view: View, rows: Rows, speeds: Speeds) -> list[int]:
        drawn: list[int] = []
        while len(drawn) < self._choices and (one := self._query(view.rng, rows, speeds, 1)):
            drawn += one
            rows = rows[rows != one[0]]
        return drawn
