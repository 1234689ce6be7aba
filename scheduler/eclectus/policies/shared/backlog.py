"""How long a node will be busy with what it has, by the estimates of its tasks: what several policies share.

Of each node it is kept when its running tasks should end and how long its line should take. A task
without an estimate is taken to run as long as is believed of its work on that node. Services have no
end and do not count: they shrink the node instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import fsum, inf

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, Enqueue, View
from eclectus.maths import numbers
from eclectus.model.objects import Task


class Backlog:
    """Seconds of work at each node, kept up at the price of what changed.

    `counts` says whose work is counted; reservations of a job in many lines are not, since most of them
    come to nothing.
    """

    def __init__(self, counts: Callable[[Task], bool] = lambda task: True) -> None:
        self._counts = counts
        self._place = -1
        self._queued = self._tasks = np.zeros(0)
        self._ends = np.zeros((0, 1))  # of running tasks, ascending, then -inf; a row a node, seconds

    def refresh(self, view: View) -> None:
        """Catch up with the cluster."""
        usage, capacity = view.cluster.usage, view.cluster.capacity
        changed = usage.since(self._place) if len(self._tasks) == capacity else None
        self._place = usage.head
        if changed is None:
            self._queued, self._tasks = np.zeros((2, capacity))
            self._ends = np.full((capacity, 1), -inf)
            changed = np.flatnonzero(view.cluster.present).tolist()
        for row in changed:
            self._look(view, row)

    def any_at(self, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether work that counts runs or waits at each of the rows."""
        return self._tasks[rows] > 0

    def wait(self, view: View, task_class: TaskClass, rows: Rows) -> Floats:
        """Seconds until a slot for the class should be free at each of the rows; 0 where one is.

        Exact by the estimates for one slot; with several, work is taken to be shared evenly by all.
        """
        running = np.maximum(self._ends[rows] - view.now, 0.0).sum(axis=1)
        seconds = (running + self._queued[rows]) / np.maximum(task_class.service_slots[rows], 1.0)
        return np.where(task_class.fits_now[rows], 0.0, seconds)

    def join_least_wait(
        self, view: View, tasks: Sequence[Task], task_class: TaskClass, rows: Rows
    ) -> Iterator[Action]:
        """Tasks of one class join, each of these rows' line of the least wait, those before it counted."""
        self.refresh(view)
        waits = self.wait(view, task_class, rows)
        for task in tasks:
            at = int(waits.argmin())
            yield Enqueue(task, int(rows[at]))
            self.refresh(view)
            waits[at] = self.wait(view, view.task_class(task), rows[at : at + 1])[0]

    def _look(self, view: View, row: int) -> None:
        running = [(since, task) for task, since in view.placed_pods(row) if self._counts_here(task)]
        waiting = [
            claim.head
            for claim in view.node_queues.get(row, ())
            if claim.is_tentative and self._counts(claim.head)
        ]
        ends = sorted(since + expected_seconds(view, task, row) for since, task in running)
        missing = len(ends) - self._ends.shape[1]
        if missing > 0:
            self._ends = np.pad(self._ends, ((0, 0), (0, missing)), constant_values=-inf)
        self._ends[row] = -inf
        self._ends[row, : len(ends)] = ends
        # fsum: residents come in no order, and the order must not decide a tie.
        self._queued[row] = fsum(expected_seconds(view, task, row) for task in waiting)
        self._tasks[row] = len(running) + len(waiting)

    def _counts_here(self, task: Task) -> bool:
        return not task.spec.long_running and self._counts(task)


def expected_seconds(view: View, task: Task, row: int) -> float:
    """What a task says it takes, else what is believed of its work on that node; inf on one of speed 0."""
    if task.estimate is not None:
        return task.estimate
    return numbers.divide(1.0, float(view.learn.speeds(task.workload).rate[row]))
