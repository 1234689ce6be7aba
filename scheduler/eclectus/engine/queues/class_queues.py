"""Pending tasks in class queues: one queue for each profile, group and class, sorted by the Order's key.

No rule can distinguish tasks of one class. If the head of a queue is unschedulable, so is every
task behind it: the queue is marked unschedulable as a whole, and activated as a whole when a node has room
for its class.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator, Mapping
from math import isnan

from eclectus.framework import Order
from eclectus.model.objects import Spec, Task

QueueKey = tuple[str, str, Spec, str]  # profile, group, spec, workload
_Entry = tuple[tuple[float, ...], int, Task]  # key, serial (so that tasks are never compared), task


class SortedClassQueue:
    """One class queue: a sorted list, and a cursor that a scheduling cycle moves along it.

    Tasks that were placed stay in the list until the cycle ends.
    """

    __slots__ = (
        "_blocked", "_cursor", "_entries",
        "group", "joined", "key", "message", "never_feasible", "placed", "profile", "serial", "spec",
        "unschedulable_since", "workload",
    )  # fmt: skip

    def __init__(self, key: QueueKey, serial: int) -> None:
        self.profile, self.group, self.spec, self.workload = key
        self.key, self.serial = key, serial
        self.unschedulable_since: float | None = None  # seconds; None while the queue is active
        self.never_feasible = False  # unschedulable because no node, however empty, may run the class
        self.message = ""  # the policy's own reason for it, if it gave one
        self.joined = 0  # tasks that came while it was unschedulable and are not counted as attempts yet
        self.placed = 0  # tasks that were answered in this scheduling cycle and wait no more
        self._entries: list[_Entry] = []
        self._cursor = 0
        self._blocked = False

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Task]:
        return (task for _, _, task in self._entries)

    @property
    def head(self) -> Task | None:
        """The next task in this scheduling cycle."""
        if self._blocked or self._cursor >= len(self._entries):
            return None
        return self._entries[self._cursor][2]

    @property
    def head_key(self) -> tuple[float, ...]:
        """The Order's key of the head; raises IndexError without a head."""
        return self._entries[self._cursor][0]

    def add(self, key: tuple[float, ...], serial: int, task: Task) -> None:
        """Insert a task."""
        insort(self._entries, (key, serial, task))

    def discard(self, key: tuple[float, ...], serial: int) -> None:
        """Remove a task, between two cycles."""
        at = bisect_left(self._entries, (key, serial))
        if at < len(self._entries) and self._entries[at][:2] == (key, serial):
            del self._entries[at]

    def take(self) -> Task | None:
        """The head, to be offered to a policy: the cursor moves past it."""
        at = self._cursor
        if self._blocked or at >= len(self._entries):
            return None
        self._cursor = at + 1
        return self._entries[at][2]

    def skip(self, most: int) -> int:
        """Move the cursor past up to so many tasks; returns past how many."""
        count = max(0, min(most, len(self._entries) - self._cursor))
        self._cursor += count
        return count

    def block(self, blocked: bool) -> None:
        """While blocked, the queue has no head, though it may have tasks."""
        self._blocked = blocked

    def mark_unschedulable(self, now: float, *, never_feasible: bool, message: str) -> None:
        """No task of the class can be placed until the cluster changes."""
        self._blocked, self.unschedulable_since = True, now
        self.never_feasible, self.message = never_feasible, message

    def recheck_later(self, now: float) -> None:
        """A recheck at this time has found the queue rightly unschedulable."""
        self.unschedulable_since = now

    def activate(self) -> None:
        """A node may have room for the class."""
        self.unschedulable_since, self.never_feasible, self.message = None, False, ""
        self.joined = 0

    def end_cycle(self, waiting: Container[str]) -> bool:
        """Remove tasks that no longer wait and reset the cursor; whether any task is left."""
        if self._cursor:
            seen = [entry for entry in self._entries[: self._cursor] if entry[2].uid in waiting]
            self._entries[: self._cursor] = seen
        self._cursor, self._blocked, self.placed = 0, False, 0
        return bool(self._entries)


class ClassQueues:
    """All pending tasks that are neither in a node queue nor backing off."""

    def __init__(self) -> None:
        self._queues: dict[QueueKey, SortedClassQueue] = {}
        self._waiting: dict[str, tuple[SortedClassQueue, tuple[float, ...], int]] = {}
        # uid -> its queue, and its key and serial there
        self.waiting: Mapping[str, tuple[SortedClassQueue, tuple[float, ...], int]] = self._waiting
        self._serial = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def __iter__(self) -> Iterator[SortedClassQueue]:
        return iter(self._queues.values())

    def __len__(self) -> int:
        """Tasks in all queues."""
        return len(self._waiting)

    def queue_of(self, uid: str) -> SortedClassQueue | None:
        """The queue of a task; None if it is in none."""
        found = self._waiting.get(uid)
        return found[0] if found else None

    def add(self, task: Task, order: Order) -> SortedClassQueue:
        """Queue a task that is not queued by its profile's Order. Raises what the Order raises."""
        self._serial += 1
        queue_key = (task.profile, order.group(task), task.spec, task.workload)
        key = tuple(order.key(task, self._serial))
        if any(map(isnan, key)):  # nan compares with nothing, so the task would never be found again
            raise ValueError(f"Order.key answered {key}")
        queue = self._queues.get(queue_key)
        if queue is None:
            queue = self._queues[queue_key] = SortedClassQueue(queue_key, self._serial)
        queue.add(key, self._serial, task)
        if queue.unschedulable_since is not None:
            queue.joined += 1
        self._waiting[task.uid] = (queue, key, self._serial)
        return queue

    def discard(self, uid: str) -> None:
        """Remove a task, between two cycles; no error if it is not queued."""
        found = self._waiting.pop(uid, None)
        if found is not None:
            queue, key, serial = found
            queue.discard(key, serial)
            if not len(queue):
                del self._queues[queue.key]

    def remove_in_cycle(self, uid: str) -> None:
        """A task no longer waits; `end_cycle` takes it out of its queue."""
        self._waiting.pop(uid)[0].placed += 1

    def end_cycle(self, queues: Iterable[SortedClassQueue]) -> None:
        """The scheduling cycle over these queues is over."""
        if not self._waiting:  # the common case: everything that waited has been placed
            self._queues.clear()
            return
        for queue in queues:
            if not queue.end_cycle(self._waiting):
                del self._queues[queue.key]
