"""What runs and what arrives: running tasks, slots of nodes, ends of tasks, and the load of all nodes."""

from __future__ import annotations

from array import array
from collections.abc import Container, Hashable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats
from eclectus.model.workload_names import namespace_of

# The running tasks of a namespace as columns (row, kind, start): updated one by one, read all at once.

Integers = NDArray[np.int64]
Kind = tuple[str, Hashable]
"""Workload and requests: tasks that are alike."""


class Running(NamedTuple):
    """A running task."""

    workload: str
    since: float  # when it was seen running, seconds


_NOTHING: Mapping[str, Running] = {}


class RunningTasks:
    """Columns without gaps: the last task moves into the position of a removed one."""

    def __init__(self) -> None:
        self._on_row: dict[int, dict[str, Running]] = {}  # by uid; only rows with tasks
        self._position: dict[str, int] = {}  # uid -> position in the columns
        self._uids: list[str] = []
        self._rows, self._numbers, self._since = array("q"), array("q"), array("d")
        self._number_of: dict[Kind, int] = {}  # kind -> its number here,
        self._users: list[int] = []  # by number: running tasks of it
        self._free: list[int] = []  # unused numbers

    def __contains__(self, uid: str) -> bool:
        return uid in self._position

    def __len__(self) -> int:
        return len(self._uids)

    def add(self, uid: str, row: int, kind: Kind, since: float) -> None:
        """Add a task that is not in the columns."""
        self._position[uid] = len(self._uids)
        self._uids.append(uid)
        self._rows.append(row)
        self._since.append(since)
        self._on_row.setdefault(row, {})[uid] = Running(kind[0], since)
        number = self._number_of.get(kind)
        if number is None:
            number = self._new_number(kind)
        self._users[number] += 1
        self._numbers.append(number)

    def remove(self, uid: str) -> int | None:
        """Remove a task; returns the row it ran on, None if it is not in the columns."""
        position = self._position.pop(uid, None)
        if position is None:
            return None
        row = self._rows[position]
        del self._on_row[row][uid]
        if not self._on_row[row]:
            del self._on_row[row]
        self._users[self._numbers[position]] -= 1
        last = self._uids.pop()
        columns = self._rows.pop(), self._numbers.pop(), self._since.pop()
        if last != uid:
            self._position[last], self._uids[position] = position, last
            self._rows[position], self._numbers[position], self._since[position] = columns
        return row

    @property
    def rows(self) -> Container[int]:
        """The rows on which something runs."""
        return self._on_row

    def on_row(self, row: int) -> Mapping[str, Running]:
        """The tasks that run on a row, by uid, in the order in which they were seen running."""
        return self._on_row.get(row, _NOTHING)

    def numbers(self) -> Mapping[Kind, int]:
        """The kinds that run here, or have run lately, and their numbers in the columns."""
        return self._number_of

    def columns(self) -> tuple[Integers, Integers, Floats]:
        """Rows, numbers of kinds and start times; shape [tasks] each."""
        return np.array(self._rows), np.array(self._numbers), np.array(self._since)

    def _new_number(self, kind: Kind) -> int:
        if not self._free:
            for name in [name for name, number in self._number_of.items() if not self._users[number]]:
                self._free.append(self._number_of.pop(name))
        if not self._free:
            self._free.append(len(self._users))
            self._users.append(0)
        number = self._number_of[kind] = self._free.pop()
        return number


# What runs where, for all namespaces together: running tasks, slots of nodes, and when a task last ended.
#
# An end is a fact about the node, whatever ran there, so it is known to all namespaces. The running tasks are
# kept by namespace, because their silence counts for their own namespace alone.

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
