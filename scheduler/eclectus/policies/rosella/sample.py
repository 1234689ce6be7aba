"""Choices by sampling: draw a few nodes, compare them, join the line of the best.

Q. Wu, Z. Liu, "Rosella", 2020: two draws in proportion to speed, with replacement (PPoT).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eclectus.core.cells import cells
from eclectus.core.model import Task
from eclectus.core.seam import Action, Join, Refuse, View
from eclectus.feasibility.classes import Numbers
from eclectus.maths import numbers
from eclectus.policies.rosella.query import Query

Cost = Callable[[Any, Numbers, Any, int], float]
"""cost(numbers, nodes, rate, row): of one feasible node, least first."""


class Sample:
    """The answer to one task, by a query rule and an assignment rule."""

    def __init__(self, query: Query, choices: int, distinct: bool, cost: Cost) -> None:
        self._query, self._cost = query, cost
        self._more, self._distinct = choices - 1, distinct

    def answer(self, view: View, task: Task) -> Action:
        """The first drawn keeps the task unless a later one costs less."""
        task_class = view.task_class(task)
        rows = task_class.waitable_rows
        drawn = best = self._query(view, task_class, rows)
        if best is None:
            return Refuse(task)
        nodes, rate = task_class.numbers, cells(view.speeds(task_class).rate)
        least: float | None = None
        for _ in range(self._more):
            if self._distinct:
                rows = rows[rows != drawn]
            drawn = self._query(view, task_class, rows)
            if drawn is None:
                break
            if drawn == best:
                continue
            if least is None:
                least = self._cost(numbers, nodes, rate, best)
            cost = self._cost(numbers, nodes, rate, drawn)
            if cost < least:
                best, least = drawn, cost
        return Join(task, best)
