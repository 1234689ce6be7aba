"""Base class of policies that place the pending tasks of a job together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from eclectus.framework import Action, Place, PlaceTraits, Rows, Spec, Task, TaskClass, Unschedulable, View


class ByJob(Place):
    """Place one job after the other; tasks that may run on no node are unschedulable."""

    traits = PlaceTraits(joins_node_queues=True, takes_all_pending=True)

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        """Group the pending tasks by job, and place each group."""
        for tasks in group_by_job(pending):
            task_class = view.task_class(tasks[0])
            rows = task_class.waitable_rows
            if len(rows):
                yield from self.place_job(view, tasks, task_class, rows)
            else:
                yield from (Unschedulable(task) for task in tasks)

    @abstractmethod
    def place_job(
        self, view: View, tasks: Sequence[Task], task_class: TaskClass, rows: Rows
    ) -> Iterator[Action]:
        """Place tasks of one class. `rows`, never empty: nodes that may run them, now or later."""


def group_by_job(pending: Iterable[Task]) -> Iterator[tuple[Task, ...]]:
    """The pending tasks by job and class, in the order of the first task of each."""
    found: dict[tuple[str, Spec, str], list[Task]] = {}
    for task in pending:
        found.setdefault((task.job or task.uid, task.spec, task.workload), []).append(task)
    for tasks in found.values():
        yield tuple(tasks)
