"""Waiting tasks answered a job at a time: what several policies share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, PlacePolicy, Unschedulable, View
from eclectus.model.objects import Spec, Task


class Jobwise(PlacePolicy):
    """Asks for each job at once; what may run nowhere is refused before."""

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        """A job at a time."""
        for tasks in jobs(turns):
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
        """Answer tasks of one class that may run or wait on any of `rows`; there is at least one."""


def jobs(turns: Iterable[Task]) -> Iterator[tuple[Task, ...]]:
    """Tasks that wait, job by job; those of one job that no rule can tell apart stand together."""
    found: dict[tuple[str, Spec, str], list[Task]] = {}
    for task in turns:
        found.setdefault((task.job or task.uid, task.spec, task.workload), []).append(task)
    for tasks in found.values():
        yield tuple(tasks)
