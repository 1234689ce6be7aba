"""Estimated work at each node: when its running tasks should end, and how long its node queue should take.

A task without an estimate is taken to need the learned mean time of its workload on that node. Long-running
pods (services) never end and do not count; they reduce the number of slots instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import fsum, inf

import numpy as np

from eclectus.framework import Action, Enqueue, Floats, Rows, Task, TaskClass, View
from eclectus.maths import numbers

LEAST_WAIT = 1e-9  # seconds, at a node without room: see Backlog.wait


class Backlog:
    """Seconds of work at each node; an update costs only the nodes that have changed.

    `counts`: which tasks count. Reservations that a job has on several nodes never count, since most of
    them will not be used.
    """

    def __init__(self, counts: Callable[[Task], bool] = lambda task: True) -> None:
        self._counts = counts
        self._cursor = -1
        self._queued = self._tasks = np.zeros(0)
        self._ends = np.zeros((0, 1))  # by row: ends of running tasks, ascending, then -inf; seconds

    def refresh(self, view: View) -> None:
        """Bring the arrays up to date with the cluster."""
        usage, capacity = view.cluster.usage, view.cluster.capacity
        changed = usage.since(self._cursor) if len(self._tasks) == capacity else None
        self._cursor = usage.head
        if changed is None:
            self._queued, self._tasks = np.zeros((2, capacity))
            self._ends = np.full((capacity, 1), -inf)
            changed = np.flatnonzero(view.cluster.present).tolist()
        for row in changed:
            self._update(view, row)

    def any_at(self, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether a task that counts runs or waits at each of the rows."""
        return self._tasks[rows] > 0

    def wait(self, view: View, task_class: TaskClass, rows: Rows) -> Floats:
        """Seconds until a slot for the class should be free at each of the rows; 0 where one is.

        For one slot this follows from the estimates; with several slots, the work is divided evenly by all.
        A node whose tasks have run for longer than estimated has no work left by the estimates. It is still
        full, so its wait is LEAST_WAIT: less than that of any work, more than that of a node with room.
        """
        running = np.zeros(len(rows))
        busy = np.flatnonzero(self.any_at(rows))  # most nodes of a large cluster may be idle
        running[busy] = np.maximum(self._ends[rows[busy]] - view.now, 0.0).sum(axis=1)
        seconds = (running + self._queued[rows]) / np.maximum(task_class.service_slots[rows], 1.0)
        return np.where(task_class.fits_now[rows], 0.0, np.maximum(seconds, LEAST_WAIT))

    def join_least_wait(
        self, view: View, tasks: Sequence[Task], task_class: TaskClass, rows: Rows
    ) -> Iterator[Action]:
        """Enqueue tasks of one class, each at the one of `rows` with the least wait at that moment."""
        self.refresh(view)
        waits = self.wait(view, task_class, rows)
        for task in tasks:
            at = int(waits.argmin())
            yield Enqueue(task, int(rows[at]))
            self.refresh(view)
            waits[at] = self.wait(view, view.task_class(task), rows[at : at + 1])[0]

    def _update(self, view: View, row: int) -> None:
        running = [(since, task) for task, since in view.placed_pods(row) if self._is_running_work(task)]
        waiting = [
            reservation.head
            for reservation in view.node_queues.get(row, ())
            if reservation.is_tentative and self._counts(reservation.head)
        ]
        ends = sorted(since + expected_seconds(view, task, row) for since, task in running)
        missing = len(ends) - self._ends.shape[1]
        if missing > 0:
            self._ends = np.pad(self._ends, ((0, 0), (0, missing)), constant_values=-inf)
        self._ends[row] = -inf
        self._ends[row, : len(ends)] = ends
        # fsum: placed pods come in no fixed order, and the order of a sum must not decide a tie.
        self._queued[row] = fsum(expected_seconds(view, task, row) for task in waiting)
        self._tasks[row] = len(running) + len(waiting)

    def _is_running_work(self, task: Task) -> bool:
        return not task.spec.long_running and self._counts(task)


def expected_seconds(view: View, task: Task, row: int) -> float:
    """The task's estimate, else the learned mean time of its workload on the node; inf at speed 0."""
    if task.estimate is not None:
        return task.estimate
    return numbers.divide(1.0, float(view.learn.speeds(task.workload).rate[row]))
