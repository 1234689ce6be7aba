"""How long a node will be busy with what it has, by the estimates of its tasks: what several policies share.

Of each node it is kept what its running tasks should have ended by and what its line should take. A
task without an estimate is taken to run as long as is believed of its work on that node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eclectus.core.journal import Rows
from eclectus.core.model import Task
from eclectus.core.seam import Action, Join, View
from eclectus.feasibility.classes import Floats, TaskClass


class Backlog:
    """Seconds of work at each node, kept up at the price of what changed.

    `counts` says whose work is counted; reservations of a job in many lines are not, since most of them
    come to nothing.
    """

    def __init__(self, counts: Callable[[Task], bool] = lambda task: True) -> None:
        self._counts = counts
        self._place = -1
        self._running = self._ends = self._queued = self._tasks = np.zeros(0)

    def refresh(self, view: View) -> None:
        """Catch up with the cluster."""
        usage, capacity = view.cluster.usage, view.cluster.capacity
        changed = usage.since(self._place) if len(self._tasks) == capacity else None
        self._place = usage.end
        if changed is None:
            self._running, self._ends, self._queued, self._tasks = np.zeros((4, capacity))
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
        running = np.maximum(self._ends[rows] - self._running[rows] * view.now, 0.0)
        seconds = (running + self._queued[rows]) / np.maximum(task_class.slots[rows], 1.0)
        return np.where(task_class.open[rows], 0.0, seconds)

    def _look(self, view: View, row: int) -> None:
        running = [(since, task) for task, since in view.residents(row) if self._counts(task)]
        waiting = [
            claim.head for claim in view.lines.get(row, ()) if claim.is_meant and self._counts(claim.head)
        ]
        self._running[row] = len(running)
        self._ends[row] = sum(since + expected_seconds(view, task, row) for since, task in running)
        self._queued[row] = sum(expected_seconds(view, task, row) for task in waiting)
        self._tasks[row] = len(running) + len(waiting)


def join_least_wait(
    view: View, tasks: Sequence[Task], rows: Rows, waits: Floats, task_class: TaskClass
) -> Iterator[Action]:
    """Each task joins the line of the least wait, those before it counted; `waits` [len(rows)] is written."""
    for task in tasks:
        at = int(waits.argmin())
        row = int(rows[at])
        waits[at] += expected_seconds(view, task, row) / task_class.slots[row]
        yield Join(task, row)


def expected_seconds(view: View, task: Task, row: int) -> float:
    """What a task says it takes, else what is believed of its work on that node."""
    if task.estimate is not None:
        return task.estimate
    return 1.0 / float(view.learn.speeds(task.workload).rate[row])
