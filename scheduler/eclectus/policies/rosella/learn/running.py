"""The tasks that run, as columns: where, what work, since when; told one by one, read all at once."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class RunningTasks:
    """Columns without gaps: who leaves gives its place to the last."""

    def __init__(self) -> None:
        self._position: dict[str, int] = {}  # uid -> place in the columns
        self._uids: list[str] = []
        self._rows, self._numbers, self._since = array("q"), array("q"), array("d")
        self._number_of: dict[str, int] = {}  # workload -> its number here…
        self._users: list[int] = []  # …and how many tasks have it
        self._free: list[int] = []  # numbers that nobody has

    def __contains__(self, uid: str) -> bool:
        return uid in self._position

    def add(self, uid: str, row: int, workload: str, since: float) -> None:
        """A task that does not run yet runs."""
        self._position[uid] = len(self._uids)
        self._uids.append(uid)
        self._rows.append(row)
        self._since.append(since)
        kind = self._number_of.get(workload)
        if kind is None:
            kind = self._new_number(workload)
        self._users[kind] += 1
        self._numbers.append(kind)

    def remove(self, uid: str) -> int | None:
        """A task leaves; the row it was on, None if it was on none."""
        place = self._position.pop(uid, None)
        if place is None:
            return None
        row = self._rows[place]
        self._users[self._numbers[place]] -= 1
        last = self._uids.pop()
        columns = self._rows.pop(), self._numbers.pop(), self._since.pop()
        if last != uid:
            self._position[last], self._uids[place] = place, last
            self._rows[place], self._numbers[place], self._since[place] = columns
        return row

    def uids_on(self, row: int) -> list[str]:
        """Who runs on a row."""
        return [self._uids[place] for place in np.flatnonzero(np.array(self._rows) == row).tolist()]

    def columns(self, index: Mapping[str, int]) -> tuple[Integers, Integers, Floats]:
        """Rows, indices of workloads (-1 where `index` has none), times since; shape [tasks] each."""
        by_number = np.full(len(self._users), -1)
        for workload, kind in self._number_of.items():
            by_number[kind] = index.get(workload, -1)
        kinds = np.array(self._numbers)
        return np.array(self._rows), by_number[kinds], np.array(self._since)

    def _new_number(self, workload: str) -> int:
        if not self._free:
            for name in [name for name, kind in self._number_of.items() if not self._users[kind]]:
                self._free.append(self._number_of.pop(name))
        if not self._free:
            self._free.append(len(self._users))
            self._users.append(0)
        kind = self._number_of[workload] = self._free.pop()
        return kind
