"""Best fit and worst fit: the tightest node with room, or the loosest.

Johnson, "Near-optimal bin packing algorithms", 1973. How tight a node is has one natural unit here: how
many more tasks of the same class would fit, by the resource that runs out first. Best fit leaves large
holes whole for large tasks, worst fit leaves everybody elbow room. Departure from the textbook: several
resources, of which those that the task does not ask for play no part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eclectus.core.journal import Rows
from eclectus.core.model import Task
from eclectus.core.seam import Action, Place, PlacePolicy, Refuse, View
from eclectus.feasibility.classes import Floats, TaskClass


@dataclass(eq=False)
class BestFit(PlacePolicy):
    """The node with room for the fewest more of this class."""

    sign = -1.0

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        """One task, one answer."""
        for task in turns:
            task_class = view.task_class(task)
            best = view.ranking(task_class, self._cost, self).best() if task_class.open_count else None
            yield Refuse(task) if best is None else Place(task, best[0])

    def _cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        return np.where(task_class.open[rows], self.sign * task_class.over[rows], np.inf)


@dataclass(eq=False)
class WorstFit(BestFit):
    """The node with room for the most more of this class."""

    sign = 1.0
