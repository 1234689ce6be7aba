"""Base class of policies that are fully described by a cost: each task gets the cheapest node with room."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, Bind, Place, Unschedulable, View
from eclectus.framework.ranking import Ranking, Weigh
from eclectus.model.objects import Task


class ByCost(Place):
    """Place each task on the node of least cost; of equal costs on the lowest row."""

    def choose(self, view: View, ranking: Ranking) -> tuple[int, float] | None:
        """Row and cost of the node to take; None if every cost is inf."""
        del view
        return ranking.best()

    @property
    def weigh(self) -> Weigh | None:
        """How preferences weigh in a cost that is without them; None where they have no effect."""
        return None

    @abstractmethod
    def cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Cost of a task of the class on these rows, shape [len(rows)]; inf where there is no room."""

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        """Place each task on the cheapest node; unschedulable if no node has room."""
        for task in pending:
            task_class = view.task_class(task)
            best = None
            if task_class.fits_now_count:
                best = self.choose(view, view.ranking(task_class, self.cost, self, weigh=self.weigh))
            yield Unschedulable(task) if best is None else Bind(task, best[0])
