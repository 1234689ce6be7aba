"""Tasks meant for nodes that are busy: lines they have joined, and plans that hold for one round.

Both count as `meant` in the cluster's arrays, so that whoever comes later sees the room as taken.
Neither is persisted: a restart makes them again from the pending pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from eclectus.core.cluster import Cluster
from eclectus.core.model import Spec, Task

Kind = tuple[Spec, str]
"""What defines a class: spec and workload."""


class Lines:
    """Per node, the tasks that have joined its line."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.by_row: dict[int, list[Task]] = {}
        self._kinds: dict[int, Counter[Kind]] = {}
        self._where: dict[str, int] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._where

    def __len__(self) -> int:
        return len(self._where)

    def row_of(self, uid: str) -> int:
        """The row whose line a task has joined; raises KeyError if none."""
        return self._where[uid]

    def join(self, task: Task, row: int) -> None:
        """The task stands last in the line of this row."""
        self.by_row.setdefault(row, []).append(task)
        self._kinds.setdefault(row, Counter())[task.spec, task.workload] += 1
        self._where[task.uid] = row
        self._cluster.mean_for(row, task.spec.requests)

    def kinds(self, row: int) -> Iterable[Kind]:
        """What there is in the line of this row, each kind once: lines are long and have few kinds."""
        return self._kinds.get(row, {}).keys()

    def leave(self, uid: str) -> None:
        """The task stands in no line any more."""
        row = self._where.pop(uid, None)
        if row is None:
            return
        line = self.by_row[row]
        task = next(task for task in line if task.uid == uid)
        line.remove(task)
        kinds, kind = self._kinds[row], (task.spec, task.workload)
        kinds[kind] -= 1
        if not kinds[kind]:
            del kinds[kind]
        if not line:
            del self.by_row[row], self._kinds[row]
        self._cluster.mean_for(row, task.spec.requests, -1)

    def disband(self, row: int) -> list[Task]:
        """Everybody leaves the line of this row; returns them in order."""
        line = list(self.by_row.get(row, ()))
        for task in line:
            self.leave(task.uid)
        return line


class Plans:
    """For one round, the busy node each waiting task is meant for; `since` outlives the round."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, tuple[Task, int]] = {}
        self._until: float | None = None
        self._since: dict[str, float] = {}

    @property
    def since(self) -> Mapping[str, float]:
        """uid -> since when the task has been planned in every round and not placed, seconds."""
        return self._since

    @property
    def next_look(self) -> float | None:
        """The earliest time at which a plan asks to be looked at again, seconds."""
        return self._until

    def row_of(self, uid: str) -> int | None:
        """The row a task is planned on."""
        plan = self._rows.get(uid)
        return plan[1] if plan else None

    def make(self, task: Task, row: int, now: float, until: float) -> None:
        """The task waits for this row."""
        self._rows[task.uid] = (task, row)
        self._since.setdefault(task.uid, now)
        self._cluster.mean_for(row, task.spec.requests)
        if until != float("inf"):
            self._until = until if self._until is None else min(self._until, until)

    def lift(self) -> None:
        """A new round: no task is meant for any node. `since` stays until `prune`."""
        for task, row in self._rows.values():
            self._cluster.mean_for(row, task.spec.requests, -1)
        self._rows.clear()
        self._until = None

    def prune(self) -> None:
        """The round is over: only tasks still planned remember since when."""
        self._since = {uid: since for uid, since in self._since.items() if uid in self._rows}

    def withdraw(self, uid: str) -> None:
        """The task is gone."""
        plan = self._rows.pop(uid, None)
        self._since.pop(uid, None)
        if plan is not None:
            task, row = plan
            self._cluster.mean_for(row, task.spec.requests, -1)
