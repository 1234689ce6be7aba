"""The running tasks of a namespace as columns (row, kind, start): updated one by one, read all at once."""

from __future__ import annotations

from array import array
from collections.abc import Container, Hashable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats

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
