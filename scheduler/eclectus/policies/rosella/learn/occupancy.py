"""What runs where, for all namespaces together: running tasks, slots of nodes, and when a task last ended.

An end is a fact about the node, whoever ran there, so it is known to all namespaces. The running tasks are
kept by namespace, because their silence counts for their own namespace alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats
from eclectus.model.workload_names import namespace_of
from eclectus.policies.rosella.learn.running import Kind, RunningTasks

HOUR = 3600.0
_NONE = RunningTasks()  # of a namespace without any; nothing is added to it


class Occupancy:
    """Running tasks and ends; arrays and lists by row."""

    def __init__(self) -> None:
        self.last_end: Floats = np.zeros(0)  # when a task last ended there, seconds
        self.running: list[int] = []  # tasks on each row; and their maximum
        self._peak_this_hour: list[int] = []  # in this hour
        self._peak_last_hour: list[int] = []  # and in the last hour
        self._hour = float("-inf")
        self._tasks: dict[str, RunningTasks] = {}  # by namespace
        self._namespace_of: dict[str, str] = {}  # uid -> namespace

    def open_rows(self, rows: int) -> None:
        """Extend the arrays to `rows` rows."""
        missing = rows - len(self.running)
        if missing > 0:
            self.last_end = np.pad(self.last_end, (0, missing))
            for counts in (self.running, self._peak_this_hour, self._peak_last_hour):
                counts.extend([0] * missing)

    def clear_row(self, row: int) -> None:
        """The row belongs to no node or to a new one: nothing runs there."""
        for tasks in list(self._tasks.values()):
            for uid in list(tasks.on_row(row)):
                self.left(uid)
        self._peak_this_hour[row] = self._peak_last_hour[row] = 0

    def started(self, uid: str, row: int, kind: Kind, now: float) -> None:
        """A task runs; further calls for the same task change nothing."""
        if uid not in self._namespace_of:
            namespace = self._namespace_of[uid] = namespace_of(kind[0])
            self._tasks.setdefault(namespace, RunningTasks()).add(uid, row, kind, now)
            self.running[row] += 1
            self._peak_this_hour[row] = max(self._peak_this_hour[row], self.running[row])

    def left(self, uid: str) -> int | None:
        """A task no longer runs; returns its row, None if it was never seen running."""
        namespace = self._namespace_of.pop(uid, None)
        if namespace is None:
            return None
        row = self._tasks[namespace].remove(uid)
        if not self._tasks[namespace]:
            del self._tasks[namespace]
        if row is not None:
            self.running[row] -= 1
        return row

    def tasks(self, namespace: str) -> RunningTasks:
        """What runs of this namespace."""
        return self._tasks.get(namespace, _NONE)

    def slots(self, now: float) -> NDArray[np.int64]:
        """The maximum number of tasks seen running on each row in the last one to two hours."""
        if now - self._hour >= HOUR:
            self._hour = now
            self._peak_last_hour, self._peak_this_hour = self._peak_this_hour, list(self.running)
        return np.maximum(self._peak_last_hour, self._peak_this_hour)
