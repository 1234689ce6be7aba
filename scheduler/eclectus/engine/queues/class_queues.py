"""Pending tasks in class queues: one queue for each profile, group and class, sorted by the Order's key.

No rule can distinguish tasks of one class. If the head of a queue is unschedulable, so is every
task behind it: the queue is marked unschedulable as a whole, and activated as a whole when a node has room
for its class.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator, Mapping
from math import isnan

from eclectus.engine.queues.unschedulable import UnschedulableClasses
from eclectus.feasibility.class_cache import ClassCache
from eclectus.framework import Order
from eclectus.model.objects import Spec, Task
from eclectus.model.reservation import ClassKey

QueueKey = tuple[str, str, Spec, str]  # profile, group, spec, workload
_Entry = tuple[tuple[float, ...], int, Task]  # key, serial (so that tasks are never compared), task


class SortedClassQueue:
    """One class queue: a sorted list, and a cursor that a scheduling cycle moves along it.

    Tasks that were placed stay in the list until the cycle ends.
    """

    __slots__ = (
        "_blocked", "_cursor", "_entries",
        "class_key", "group", "joined", "key", "message", "never_feasible", "placed", "profile", "serial",
        "spec", "unschedulable_since", "workload",
    )  # fmt: skip

    def __init__(self, key: QueueKey, serial: int) -> None:
        self.profile, self.group, self.spec, self.workload = key
        self.key, self.serial = key, serial
        self.class_key: ClassKey = (self.spec, self.workload)
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
        """No task of the class can be placed until the cluster changes. Called by `ClassQueues` only."""
        self._blocked, self.unschedulable_since = True, now
        self.never_feasible, self.message = never_feasible, message

    def recheck_later(self, now: float) -> None:
        """A recheck at this time has found the queue rightly unschedulable."""
        self.unschedulable_since = now

    def activate(self) -> None:
        """A node may have room for the class. Called by `ClassQueues` only."""
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
    """All pending tasks that are neither in a node queue nor backing off.

    A queue is active or unschedulable. An unschedulable one costs nothing until a row changes on which its
    class may fit.
    """

    def __init__(self, classes: ClassCache) -> None:
        self._queues: dict[QueueKey, SortedClassQueue] = {}
        self._active: dict[QueueKey, SortedClassQueue] = {}
        self._is_sorted = True  # whether `_active` is in the order of the queues' creation
        self._unschedulable: dict[ClassKey, dict[QueueKey, SortedClassQueue]] = {}
        self._joined: dict[QueueKey, SortedClassQueue] = {}  # unschedulable, with tasks that came later
        self._unschedulable_classes = UnschedulableClasses(classes)
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
            self._active[queue_key] = queue
        queue.add(key, self._serial, task)
        if queue.unschedulable_since is not None:
            queue.joined += 1
            self._joined[queue_key] = queue
        self._waiting[task.uid] = (queue, key, self._serial)
        return queue

    def discard(self, uid: str) -> None:
        """Remove a task, between two cycles; no error if it is not queued."""
        found = self._waiting.pop(uid, None)
        if found is not None:
            queue, key, serial = found
            queue.discard(key, serial)
            if not len(queue):
                self._drop(queue)

    def remove_in_cycle(self, uid: str) -> None:
        """A task no longer waits; `end_cycle` takes it out of its queue."""
        self._waiting.pop(uid)[0].placed += 1

    def end_cycle(self, queues: Iterable[SortedClassQueue]) -> None:
        """The scheduling cycle over these queues is over."""
        if not self._waiting and not self._unschedulable:  # the common case: all that waited is placed
            self._queues.clear()
            self._active.clear()
            return
        for queue in queues:
            if not queue.end_cycle(self._waiting):
                self._drop(queue)

    def _drop(self, queue: SortedClassQueue) -> None:
        """The queue is empty."""
        self._make_active(queue)
        del self._queues[queue.key], self._active[queue.key]

    # -- active and unschedulable queues ---------------------------------------------------------

    def active(self) -> dict[str, list[SortedClassQueue]]:
        """The active queues by profile, eldest first, with those that a change of the cluster activates."""
        for key in self._unschedulable_classes.with_room():
            for queue in list(self._unschedulable[key].values()):
                self.activate(queue)
        if not self._is_sorted:
            self._active = dict(sorted(self._active.items(), key=lambda item: item[1].serial))
            self._is_sorted = True
        active: dict[str, list[SortedClassQueue]] = {}
        for queue in self._active.values():
            active.setdefault(queue.profile, []).append(queue)
        return active

    def activate(self, queue: SortedClassQueue) -> None:
        """A node may have room for the class of the queue; no effect on an active queue."""
        queue.activate()
        self._make_active(queue)

    def _make_active(self, queue: SortedClassQueue) -> None:
        if queue.key in self._active:
            return
        self._active[queue.key] = queue
        self._is_sorted = False
        others = self._unschedulable[queue.class_key]
        del others[queue.key]
        if not others:
            del self._unschedulable[queue.class_key]
            self._unschedulable_classes.discard(queue.class_key)

    def mark_unschedulable(self, queue: SortedClassQueue, now: float, *, never: bool, message: str) -> None:
        """No task of an active queue can be placed until the cluster changes.

        `never`: because no node, however empty, may run the class. `message`: the policy's own reason.
        """
        queue.mark_unschedulable(now, never_feasible=never, message=message)
        del self._active[queue.key]
        self._unschedulable.setdefault(queue.class_key, {})[queue.key] = queue
        self._unschedulable_classes.add(queue.class_key)

    def of_class(self, profile: str, class_key: ClassKey) -> Iterator[Task]:
        """The tasks of a profile and class, each queue in its order; O(active queues)."""
        refused, active = self._unschedulable.get(class_key, {}).values(), self._active.values()
        for queue in (*refused, *active):
            if queue.profile == profile and queue.class_key == class_key:
                yield from queue

    def take_joined(self) -> list[tuple[SortedClassQueue, int]]:
        """The unschedulable queues that tasks have joined since the last call, and how many of them wait."""
        taken = []
        for queue in self._joined.values():
            if queue.joined:
                taken.append((queue, min(queue.joined, len(queue))))
                queue.joined = 0
        self._joined.clear()
        return taken

    def unschedulable_since(self, since: float) -> list[SortedClassQueue]:
        """The queues that became unschedulable, or were rechecked, at this time or before; O(queues)."""
        queues = (queue for others in self._unschedulable.values() for queue in others.values())
        return [queue for queue in queues if (queue.unschedulable_since or 0.0) <= since]
