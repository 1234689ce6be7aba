"""Which claims the pods on each row use, and how many volumes of each CSI driver are attached there.

A volume that several pods of a node use is attached once. A claim has one volume, so claims are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from eclectus.model.objects import Task

Counts = NDArray[np.int64]
NO_LIMIT = np.iinfo(np.int64).max


class ClaimUsers:
    """Pods on nodes by the claims that they use. `driver` returns the CSI driver of a claim by its key."""

    def __init__(self, rows: int, driver: Callable[[str], str]) -> None:
        self._rows, self._driver = rows, driver
        self._users: dict[str, dict[int, int]] = {}  # key of a claim -> row -> pods
        self._counted: dict[str, str] = {}  # key of a claim that is used -> the driver it is counted under
        self._attached: dict[str, Counts] = {}  # driver -> volumes on each row
        self._limits: dict[str, Counts] = {}  # driver -> the most volumes on each row
        self._changed: dict[str, None] = {}
        self._contended: dict[str, int] = {}  # key of a claim -> pods that wait whose rules read who uses it

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._users = {key: dict(rows) for key, rows in self._users.items()}
        self._attached = {driver: counts.copy() for driver, counts in self._attached.items()}
        self._limits = {driver: counts.copy() for driver, counts in self._limits.items()}
        self._counted, self._changed = dict(self._counted), dict(self._changed)
        self._contended = dict(self._contended)
        return self

    # -- pods and their claims -----------------------------------------------------------------------

    def hold(self, row: int, task: Task) -> bool:
        """A pod with claims has come to the row; whether any row may have changed for a pod that waits."""
        for key in claim_keys(task):
            rows = self._users.setdefault(key, {})
            if not rows:
                self._counted[key] = self._driver(key)
            if row not in rows:
                self._count(self._counted[key], row, 1)
            rows[row] = rows.get(row, 0) + 1
            self._changed[key] = None
        return self._is_contended(task)

    def release(self, row: int, task: Task) -> bool:
        """A pod with claims has left the row; returns the same as `hold`."""
        for key in claim_keys(task):
            rows = self._users[key]
            rows[row] -= 1
            if not rows[row]:
                del rows[row]
                self._count(self._counted[key], row, -1)
            if not rows:
                del self._users[key], self._counted[key]
            self._changed[key] = None
        return self._is_contended(task)

    def contend(self, key: str, pods: int) -> None:
        """So many more pods wait (or fewer, if negative) whose rules read who uses this claim."""
        self._contended[key] = self._contended.get(key, 0) + pods
        if not self._contended[key]:
            del self._contended[key]

    def _is_contended(self, task: Task) -> bool:
        return bool(self._contended) and any(key in self._contended for key in claim_keys(task))

    def driver_changed(self, key: str) -> list[int]:
        """The claim may have another driver now; returns the rows on which the counts have changed."""
        before = self._counted.get(key)
        if before is None or (driver := self._driver(key)) == before:
            return []
        self._counted[key] = driver
        rows = list(self._users[key])
        for row in rows:
            self._count(before, row, -1)
            self._count(driver, row, 1)
        return rows

    def pods(self, key: str) -> int:
        """How many pods on nodes use the claim."""
        return sum(self._users.get(key, {}).values())

    def pods_by_row(self, key: str) -> Mapping[int, int]:
        """How many pods use the claim, by row."""
        return self._users.get(key, {})

    def counted_driver(self, key: str) -> str:
        """The driver under which a claim that pods on nodes use is counted; empty: it is not."""
        return self._counted.get(key, "")

    def take_changed(self) -> dict[str, None]:
        """The keys of claims that more or fewer pods use than at the last call."""
        changed, self._changed = self._changed, {}
        return changed

    # -- limits of nodes -----------------------------------------------------------------------------

    def set_limits(self, row: int, limits: Iterable[tuple[str, int]]) -> None:
        """The most volumes of each CSI driver on a row; of a driver that is not named any number."""
        for counts in self._limits.values():
            counts[row] = NO_LIMIT
        for driver, count in limits:
            if driver not in self._limits:
                self._limits[driver] = np.full(self._rows, NO_LIMIT)
            self._limits[driver][row] = count

    def resemble(self, row: int, other: int) -> None:
        """The limits of a row are those of another one."""
        for counts in self._limits.values():
            counts[row] = counts[other]

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now."""
        more = (0, rows - self._rows)
        self._rows = rows
        self._attached = {driver: np.pad(each, more) for driver, each in self._attached.items()}
        self._limits = {
            driver: np.pad(each, more, constant_values=NO_LIMIT) for driver, each in self._limits.items()
        }

    def free(self, driver: str) -> Counts | None:
        """How many more volumes of this driver can be attached on each row; None where none has a limit."""
        limits = self._limits.get(driver)
        if limits is None:
            return None
        attached = self._attached.get(driver)
        return limits if attached is None else limits - attached

    def _count(self, driver: str, row: int, volumes: int) -> None:
        if not driver:
            return
        if driver not in self._attached:
            self._attached[driver] = np.zeros(self._rows, dtype=np.int64)
        self._attached[driver][row] += volumes


def claim_keys(task: Task) -> Sequence[str]:
    """The keys of the claims of a pod, each once, in the order of its volumes."""
    return list(dict.fromkeys(f"{task.namespace}/{each.name}" for each in task.claims))
