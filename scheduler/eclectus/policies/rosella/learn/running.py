"""The tasks that run, as columns: where, what work, since when; told one by one, read all at once."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Running:
    """Columns without gaps: who leaves gives its place to the last."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}  # uid -> place in the columns
        self._uids: list[str] = []
        self._rows, self._kinds, self._since = array("q"), array("q"), array("d")
        self._kind: dict[str, int] = {}  # workload -> its number here…
        self._users: list[int] = []  # …and how many tasks have it
        self._free: list[int] = []  # numbers that nobody has

    def __contains__(self, uid: str) -> bool:
        return uid in self._place

    def add(self, uid: str, row: int, workload: str, since: float) -> None:
        """A task that does not run yet runs."""
        self._place[uid] = len(self._uids)
        self._uids.append(uid)
        self._rows.append(row)
        self._since.append(since)
        kind = self._kind.get(workload)
        if kind is None:
            kind = self._number(workload)
        self._users[kind] += 1
        self._kinds.append(kind)

    def take(self, uid: str) -> int | None:
        """A task leaves; the row it was on, None if it was on none."""
        place = self._place.pop(uid, None)
        if place is None:
            return None
        row = self._rows[place]
        self._users[self._kinds[place]] -= 1
        last = self._uids.pop()
        columns = self._rows.pop(), self._kinds.pop(), self._since.pop()
        if last != uid:
            self._place[last], self._uids[place] = place, last
            self._rows[place], self._kinds[place], self._since[place] = columns
        return row

    def on(self, row: int) -> list[str]:
        """Who runs on a row."""
        return [self._uids[place] for place in np.flatnonzero(np.array(self._rows) == row).tolist()]

    def columns(self, index: Mapping[str, int]) -> tuple[Integers, Integers, Floats]:
        """Rows, indices of workloads (-1 where `index` has none), times since; shape [tasks] each."""
        by_number = np.full(len(self._users), -1)
        for workload, kind in self._kind.items():
            by_number[kind] = index.get(workload, -1)
        kinds = np.array(self._kinds)
        return np.array(self._rows), by_number[kinds], np.array(self._since)

    def _number(self, workload: str) -> int:
        if not self._free:
            for name in [name for name, kind in self._kind.items() if not self._users[kind]]:
                self._free.append(self._kind.pop(name))
        if not self._free:
            self._free.append(len(self._users))
            self._users.append(0)
        kind = self._kind[workload] = self._free.pop()
        return kind
