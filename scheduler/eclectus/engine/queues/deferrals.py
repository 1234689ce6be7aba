"""Deferred tasks: the busy node that each of them waits for, if it waits for one.

A deferred task counts as `tentative` on that node until its class is asked about again. Nothing is persisted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Task


class Deferrals:
    """The row each deferred task waits for, None for no one row; `since` outlives the cycle."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, tuple[Task, int | None]] = {}
        self.rows: Mapping[str, tuple[Task, int | None]] = self._rows  # uid -> the task and the row
        self._since: dict[str, float] = {}
        self.since: Mapping[str, float] = self._since  # uid -> since when deferred in every cycle, seconds
        self.released: list[str] = []  # since the last cycle has ended; written here only

    def row_of(self, uid: str) -> int | None:
        """The row for which a task is deferred; None if it is not, or for none."""
        deferred = self._rows.get(uid)
        return deferred[1] if deferred else None

    def add(self, task: Task, row: int | None, now: float) -> None:
        """The task waits for this row."""
        self._rows[task.uid] = (task, row)
        self._since.setdefault(task.uid, now)
        if row is not None:
            self._cluster.add_tentative(row, task.spec.requests)

    def discard(self, uid: str) -> None:
        """The task is placed or gone."""
        if self._since:
            self._free(uid)
            self._since.pop(uid, None)

    def release(self, uids: Iterable[str]) -> None:
        """These tasks are about to be decided again. Their `since` is kept until `end_cycle`."""
        for uid in uids:
            self._free(uid)
            self.released.append(uid)

    def release_all(self) -> None:
        """Every task is to be decided again."""
        self.release(list(self._rows))

    def end_cycle(self) -> None:
        """Forget `since` of tasks that were released and not deferred again."""
        for uid in self.released:
            if uid not in self._rows:
                self._since.pop(uid, None)
        self.released.clear()

    def _free(self, uid: str) -> None:
        deferred = self._rows.pop(uid, None)
        if deferred is not None:
            task, row = deferred
            if row is not None:
                self._cluster.add_tentative(row, task.spec.requests, -1)
