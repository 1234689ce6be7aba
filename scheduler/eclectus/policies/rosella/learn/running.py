"""The running tasks as columns (row, workload, start): updated one by one, read all at once."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class RunningTasks:
    """Columns without gaps: the last task moves into the position of a removed one."""

    def __init__(self) -> None:
        self._position: dict[str, int] = {}  # uid -> position in the columns
        self._uids: list[str] = []
        self._rows, self._numbers, self._since = array("q"), array("q"), array("d")
        self._number_of: dict[str, int] = {}  # workload -> its number here,
        self._users: list[int] = []  # by number: running tasks of it
        self._free: list[int] = []  # unused numbers

    def __contains__(self, uid: str) -> bool:
        return uid in self._position

    def add(self, uid: str, row: int, workload: str, since: float) -> None:
        """Add a task that is not in the columns."""
        self._position[uid] = len(self._uids)
        self._uids.append(uid)
        self._rows.append(row)
        self._since.append(since)
        number = self._number_of.get(workload)
        if number is None:
            number = self._new_number(workload)
        self._users[number] += 1
        self._numbers.append(number)

    def remove(self, uid: str) -> int | None:
        """Remove a task; returns the row it ran on, None if it is not in the columns."""
        position = self._position.pop(uid, None)
        if position is None:
            return None
        row = self._rows[position]
        self._users[self._numbers[position]] -= 1
        last = self._uids.pop()
        columns = self._rows.pop(), self._numbers.pop(), self._since.pop()
        if last != uid:
            self._position[last], self._uids[position] = position, last
            self._rows[position], self._numbers[position], self._since[position] = columns
        return row

    def uids_on(self, row: int) -> list[str]:
        """The tasks that run on a row."""
        return [self._uids[position] for position in np.flatnonzero(np.array(self._rows) == row).tolist()]

    def columns(self, index: Mapping[str, int]) -> tuple[Integers, Integers, Floats]:
        """Rows, workload indices (-1 where `index` has none) and start times; shape [tasks] each."""
        by_number = np.full(len(self._users), -1)
        for workload, number in self._number_of.items():
            by_number[number] = index.get(workload, -1)
        numbers = np.array(self._numbers)
        return np.array(self._rows), by_number[numbers], np.array(self._since)

    def _new_number(self, workload: str) -> int:
        if not self._free:
            for name in [name for name, number in self._number_of.items() if not self._users[number]]:
                self._free.append(self._number_of.pop(name))
        if not self._free:
            self._free.append(len(self._users))
            self._users.append(0)
        number = self._number_of[workload] = self._free.pop()
        return number
