"""Tasks meant for nodes that are busy: lines they stand in, and plans that hold for one round.

A task that has joined one line, and one that is planned on a node, count as `meant` in the cluster's
arrays, so that whoever comes later sees the room as taken. A job's reservations do not: most of them
will come to nothing. Neither is persisted: a restart makes them again from the pending pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf

from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey, Reservation


class NodeQueues:
    """Per node, the claims that stand in its line."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.by_row: dict[int, list[Reservation]] = {}
        self._class_keys: dict[int, dict[ClassKey, int]] = {}
        self._reservations: dict[str, Reservation] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._reservations

    def __len__(self) -> int:
        return len(self._reservations)

    def reservation_of(self, uid: str) -> Reservation:
        """The claim by which a task waits; raises KeyError if none."""
        return self._reservations[uid]

    def class_keys(self, row: int) -> Iterable[ClassKey]:
        """What there is in the line of this row, each kind once: lines are long and have few kinds."""
        return self._class_keys.get(row, {}).keys()

    # -- coming ----------------------------------------------------------------------------------

    def enqueue(self, task: Task, row: int, now: float) -> None:
        """The task stands last in the line of this row."""
        claim = self._reservations[task.uid] = Reservation([task], [row], now, is_tentative=True)
        self._enqueue(claim, row)

    def reserve(self, tasks: Sequence[Task], rows: Sequence[int], sticky: bool, now: float) -> None:
        """Tasks of one kind stand behind a reservation in the line of each of these rows."""
        claim = Reservation(list(tasks), list(rows), now, sticky=sticky)
        for row in claim.rows:
            self._enqueue(claim, row)
        for task in claim.tasks:
            self._reservations[task.uid] = claim

    def move(self, claim: Reservation, row: int, to: int) -> None:
        """The claim leaves the line of `row` and stands last in that of `to`."""
        self._dequeue(claim, row)
        claim.rows.append(to)
        self._enqueue(claim, to)

    def _enqueue(self, claim: Reservation, row: int) -> None:
        self.by_row.setdefault(row, []).append(claim)
        kinds = self._class_keys.setdefault(row, {})
        kinds[claim.class_key] = kinds.get(claim.class_key, 0) + 1
        if claim.is_tentative:
            self._cluster.add_tentative(row, claim.class_key[0].requests)

    # -- going -----------------------------------------------------------------------------------

    def dequeue_next(self, claim: Reservation, row: int) -> Task:
        """The claim's next task starts on this row and stands in no line any more."""
        task = claim.tasks[0]
        if len(claim.tasks) > 1 and not claim.sticky:
            self._dequeue(claim, row)
        self.remove(task.uid)
        if claim.tasks and not claim.rows:  # its last reservation is used up, and tasks are left
            claim.rows.append(row)
            self._enqueue(claim, row)
        return task

    def remove(self, uid: str) -> None:
        """The task stands in no line any more; with its last task a claim is void everywhere."""
        claim = self._reservations.pop(uid, None)
        if claim is None:
            return
        if len(claim.tasks) == 1:
            for row in tuple(claim.rows):
                self._dequeue(claim, row)
        del claim.tasks[[task.uid for task in claim.tasks].index(uid)]

    def remove_reservation(self, claim: Reservation, row: int) -> list[Task]:
        """The claim is void at this row; returns its tasks, in no line any more, if it stood only there."""
        if any(other != row for other in claim.rows):
            while row in claim.rows:
                self._dequeue(claim, row)
            return []
        tasks = list(claim.tasks)
        for task in tasks:
            self.remove(task.uid)
        return tasks

    def remove_queue(self, row: int) -> list[Task]:
        """The line of this row is no more; returns those who now stand in no line, in order."""
        claims = dict.fromkeys(self.by_row.get(row, ()))
        return [task for claim in claims for task in self.remove_reservation(claim, row)]

    def _dequeue(self, claim: Reservation, row: int) -> None:
        claim.rows.remove(row)
        line, kinds = self.by_row[row], self._class_keys[row]
        line.remove(claim)
        kinds[claim.class_key] -= 1
        if not kinds[claim.class_key]:
            del kinds[claim.class_key]
        if not line:
            del self.by_row[row], self._class_keys[row]
        if claim.is_tentative:
            self._cluster.add_tentative(row, claim.class_key[0].requests, -1)


class Deferrals:
    """For one round, the busy node each waiting task is meant for; `since` outlives the round."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, tuple[Task, int]] = {}
        # Read these, do not write them:
        self.next_recheck = inf  # when the first plan asks to be looked at again, seconds
        self.since: dict[str, float] = {}  # uid -> since when planned in every round and not placed, seconds

    def row_of(self, uid: str) -> int | None:
        """The row a task is planned on."""
        plan = self._rows.get(uid)
        return plan[1] if plan else None

    def add(self, task: Task, row: int, now: float, until: float) -> None:
        """The task waits for this row."""
        self._rows[task.uid] = (task, row)
        self.since.setdefault(task.uid, now)
        self._cluster.add_tentative(row, task.spec.requests)
        self.next_recheck = min(self.next_recheck, until)

    def clear(self) -> None:
        """A new round: no task is meant for any node. `since` stays until `prune`."""
        self.next_recheck = inf
        if self._rows:
            for task, row in self._rows.values():
                self._cluster.add_tentative(row, task.spec.requests, -1)
            self._rows.clear()

    def prune(self) -> None:
        """The round is over: only tasks still planned remember since when."""
        if self.since:
            for uid in [uid for uid in self.since if uid not in self._rows]:
                del self.since[uid]

    def discard(self, uid: str) -> None:
        """The task is gone."""
        if not self.since:
            return
        plan = self._rows.pop(uid, None)
        self.since.pop(uid, None)
        if plan is not None:
            task, row = plan
            self._cluster.add_tentative(row, task.spec.requests, -1)
