"""Waiting tasks in lanes: one lane for each class, group and profile, each in the Order's order.

Tasks of a class cannot be told apart by any rule, so what is refused to the head of a lane is refused
to all of it: a lane is parked whole, and woken whole when a node opens for its class. A round costs
the lanes that have something to do, not the pods that wait.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator
from math import isnan

from eclectus.framework import Order
from eclectus.model.objects import Spec, Task

QueueKey = tuple[str, str, Spec, str]  # profile, group, spec, workload
_Entry = tuple[tuple[float, ...], int, Task]  # key, serial (so that tasks are never compared), task


class SortedClassQueue:
    """One lane. A round walks it with a cursor; what was placed is swept out when the round is over."""

    __slots__ = (
        "_blocked", "_cursor", "_entries",
        "group", "key", "message", "never_feasible", "profile", "serial", "spec",
        "unschedulable_since", "workload",
    )  # fmt: skip

    def __init__(self, key: QueueKey, serial: int) -> None:
        self.profile, self.group, self.spec, self.workload = key
        self.key, self.serial = key, serial
        self.unschedulable_since: float | None = None  # seconds; None while the lane is active
        self.never_feasible = False  # parked because no node, however empty, may run its class
        self.message = ""  # the policy's own reason for parking it, if it gave one
        self._entries: list[_Entry] = []
        self._cursor = 0
        self._blocked = False

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Task]:
        return (task for _, _, task in self._entries)

    @property
    def head(self) -> Task | None:
        """The next task for this round."""
        if self._blocked or self._cursor >= len(self._entries):
            return None
        return self._entries[self._cursor][2]

    @property
    def head_key(self) -> tuple[float, ...]:
        """The Order's key of the head; raises IndexError without a head."""
        return self._entries[self._cursor][0]

    def add(self, key: tuple[float, ...], serial: int, task: Task) -> None:
        """Insert a task at its place."""
        insort(self._entries, (key, serial, task))

    def discard(self, key: tuple[float, ...], serial: int) -> None:
        """Take a task out, between rounds."""
        at = bisect_left(self._entries, (key, serial))
        if at < len(self._entries) and self._entries[at][:2] == (key, serial):
            del self._entries[at]

    def take(self) -> Task | None:
        """The head, to be offered: the cursor moves past it."""
        at = self._cursor
        if self._blocked or at >= len(self._entries):
            return None
        self._cursor = at + 1
        return self._entries[at][2]

    def skip(self, most: int) -> int:
        """The cursor moves past up to so many tasks; returns past how many."""
        count = max(0, min(most, len(self._entries) - self._cursor))
        self._cursor += count
        return count

    def block(self, closed: bool) -> None:
        """Whether it has no head for now, though there may be more tasks."""
        self._blocked = closed

    def mark_unschedulable(self, now: float, hopeless: bool, words: str) -> None:
        """Nothing for this class until the cluster changes."""
        self._blocked, self.unschedulable_since, self.never_feasible, self.message = (
            True,
            now,
            hopeless,
            words,
        )

    def activate(self) -> None:
        """The class has hope again."""
        self.unschedulable_since, self.never_feasible, self.message = None, False, ""

    def end_cycle(self, waiting: Container[str]) -> bool:
        """The round is over: drop who waits no more, start from the front again; whether anybody is left."""
        if self._cursor:
            seen = [entry for entry in self._entries[: self._cursor] if entry[2].uid in waiting]
            self._entries[: self._cursor] = seen
        self._cursor, self._blocked = 0, False
        return bool(self._entries)


class ClassQueues:
    """All waiting tasks that are in nobody's line and not backing off."""

    def __init__(self) -> None:
        self._queues: dict[QueueKey, SortedClassQueue] = {}
        # By uid: its lane, and its key and serial there. Read it, do not write it.
        self.waiting: dict[str, tuple[SortedClassQueue, tuple[float, ...], int]] = {}
        self._serial = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self.waiting

    def __iter__(self) -> Iterator[SortedClassQueue]:
        return iter(self._queues.values())

    def __len__(self) -> int:
        return len(self.waiting)

    def queue_of(self, uid: str) -> SortedClassQueue | None:
        """The lane in which a task waits."""
        found = self.waiting.get(uid)
        return found[0] if found else None

    def add(self, task: Task, order: Order) -> SortedClassQueue:
        """Queue a task by its profile's order; it must not be queued already."""
        self._serial += 1
        lane_key = (task.profile, order.group(task), task.spec, task.workload)
        key = tuple(order.key(task, self._serial))
        if any(map(isnan, key)):  # would stand nowhere and never be found again; no number at all raises
            raise ValueError(f"Order.key answered {key}")
        lane = self._queues.get(lane_key)
        if lane is None:
            lane = self._queues[lane_key] = SortedClassQueue(lane_key, self._serial)
        lane.add(key, self._serial, task)
        self.waiting[task.uid] = (lane, key, self._serial)
        return lane

    def discard(self, uid: str) -> None:
        """A task waits no more, between rounds."""
        found = self.waiting.pop(uid, None)
        if found is not None:
            lane, key, serial = found
            lane.discard(key, serial)
            if not len(lane):
                del self._queues[lane.key]

    def remove_in_cycle(self, uid: str) -> None:
        """A task waits no more, within a round: `sweep` will take it out of its lane."""
        del self.waiting[uid]

    def end_cycle(self, walked: Iterable[SortedClassQueue]) -> None:
        """A round over these lanes is over."""
        if not self.waiting:  # mostly whoever waited has found a place
            self._queues.clear()
            return
        for lane in walked:
            if not lane.end_cycle(self.waiting):
                del self._queues[lane.key]
