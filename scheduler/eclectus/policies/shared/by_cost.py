"""One task, one answer: the node with room of least cost. A policy of this shape is its cost and no more."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, Place, PlacePolicy, Unschedulable, View
from eclectus.model.objects import Task


class ByCost(PlacePolicy):
    """Place each task on the cheapest node; of equals on the first."""

    @abstractmethod
    def cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Cost of a task of the class on these rows, shape [len(rows)]; inf where there is no room."""

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        """One task, one answer."""
        for task in turns:
            task_class = view.task_class(task)
            best = view.ranking(task_class, self.cost, self).best() if task_class.fits_now_count else None
            yield Unschedulable(task) if best is None else Place(task, best[0])
