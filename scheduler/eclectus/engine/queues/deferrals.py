"""Deferred tasks: for one scheduling cycle, the busy node that each of them waits for.

A deferred task counts as `tentative` on that node until the next cycle, which asks the policy again. Nothing
is persisted.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Task


class Deferrals:
    """The row each deferred task waits for; `since` outlives the cycle."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, tuple[Task, int]] = {}
        self._since: dict[str, float] = {}
        self.since: Mapping[str, float] = self._since  # uid -> since when deferred in every cycle, seconds
        self._next_recheck = inf

    @property
    def next_recheck(self) -> float:
        """The first time at which a deferred task asks to be placed again, seconds; inf for never."""
        return self._next_recheck

    def row_of(self, uid: str) -> int | None:
        """The row for which a task is deferred; None if it is not."""
        deferred = self._rows.get(uid)
        return deferred[1] if deferred else None

    def add(self, task: Task, row: int, now: float, until: float) -> None:
        """The task waits for this row, at most until this time."""
        self._rows[task.uid] = (task, row)
        self._since.setdefault(task.uid, now)
        self._cluster.add_tentative(row, task.spec.requests)
        self._next_recheck = min(self._next_recheck, until)

    def discard(self, uid: str) -> None:
        """The task is placed or gone."""
        if not self._since:
            return
        deferred = self._rows.pop(uid, None)
        self._since.pop(uid, None)
        if deferred is not None:
            task, row = deferred
            self._cluster.add_tentative(row, task.spec.requests, -1)

    def begin_cycle(self) -> None:
        """No task is deferred any more. `since` is kept until `end_cycle`."""
        self._next_recheck = inf
        if self._rows:
            for task, row in self._rows.values():
                self._cluster.add_tentative(row, task.spec.requests, -1)
            self._rows.clear()

    def end_cycle(self) -> None:
        """Forget `since` of tasks that were not deferred again."""
        if self._since:
            for uid in [uid for uid in self._since if uid not in self._rows]:
                del self._since[uid]
