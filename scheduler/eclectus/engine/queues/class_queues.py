"""All pending tasks that are neither in a node queue nor backing off, by profile and class.

A class is active, deferred, withheld or unschedulable. Only an active one costs anything: an unschedulable
one is activated when a row changes on which it may fit (unschedulable.py), a deferred one when something
happens that could change the answers to its tasks, and a withheld one when its Order could rank one of its
tasks (waits.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf, isnan

from msgspec import Struct

from eclectus.cluster.changelog import Rows
from eclectus.engine.queues.class_queue import SortedClassQueue
from eclectus.engine.queues.pending_class import GroupIndex, PendingClass, PendingKey
from eclectus.engine.queues.unschedulable import UnschedulableClasses
from eclectus.feasibility.class_cache import ClassCache
from eclectus.framework import Order, Profile
from eclectus.model.gangs import GangKey
from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey


class Queued(Struct, frozen=True, gc=False):
    """A pod's entry in a class queue."""

    pending: PendingClass
    queue: SortedClassQueue
    key: tuple[float, ...]  # of the Order
    serial: int


class ClassQueues:
    """Pending classes by what is to be done with them."""

    def __init__(self, classes: ClassCache, profiles: Iterable[Profile]) -> None:
        self._classes: dict[PendingKey, PendingClass] = {}
        self._active: dict[PendingKey, PendingClass] = {}
        self.active: Mapping[PendingKey, PendingClass] = self._active  # to be asked about in the next cycle
        self._unschedulable: dict[ClassKey, dict[PendingKey, PendingClass]] = {}
        self._joined: dict[PendingKey, PendingClass] = {}
        self.joined: Mapping[PendingKey, PendingClass] = self._joined  # unschedulable, with later tasks
        self._unschedulable_classes = UnschedulableClasses(classes)
        self.count = 0  # tasks in all queues; written here only
        # By profile, of those whose Order ranks groups:
        self._groups: dict[str, GroupIndex] = {
            profile.scheduler_name: {} for profile in profiles if profile.order.traits.ranks_groups
        }
        self.groups: Mapping[str, GroupIndex] = self._groups
        self._serial = 0

    def __iter__(self) -> Iterator[PendingClass]:
        return iter(self._classes.values())

    def __len__(self) -> int:
        """Tasks in all queues."""
        return self.count

    def class_of(self, task: Task) -> PendingClass | None:
        """The pending class of tasks like this one; None if none of them waits, leads of gangs aside."""
        return self._classes.get((task.profile, task.spec, task.workload, None))

    def add(self, task: Task, order: Order, gang: GangKey | None = None) -> Queued:
        """Queue a task that is not queued by its profile's Order. Raises what the Order raises.

        `gang`: whose lead it is.
        """
        self._serial += 1
        group = order.group(task)
        key = tuple(order.key(task, self._serial))
        if any(map(isnan, key)):  # nan compares with nothing, so the task would never be found again
            raise ValueError(f"Order.key answered {key}")
        pending_key = (task.profile, task.spec, task.workload, gang)
        pending = self._classes.get(pending_key)
        if pending is None:
            pending = PendingClass(pending_key, self._groups.get(task.profile))
            self._classes[pending_key] = self._active[pending_key] = pending
        queue = pending.add(group, key, self._serial, task)
        if pending.unschedulable_since is not None:
            pending.joined += 1
            self._joined[pending_key] = pending
        elif pending.is_deferred or pending.is_withheld:
            self.activate(pending)
        self.count += 1
        return Queued(pending, queue, key, self._serial)

    def discard(self, queued: Queued) -> None:
        """Remove a task, between two cycles."""
        pending = queued.pending
        self.count -= 1
        pending.discard(queued.queue, queued.key, queued.serial)
        if pending.is_deferred or pending.is_withheld or not pending.queues:
            self.activate(pending)
        if not pending.queues:
            self._drop(pending)

    def answer(self, pending: PendingClass, queue: SortedClassQueue, serial: int) -> None:
        """A task was taken and waits here no more; `end_cycle` takes it out of its queue."""
        self.count -= 1
        pending.count -= 1
        pending.answered += 1
        queue.answered.add(serial)

    def end_cycle(self, classes: Iterable[PendingClass]) -> None:
        """The scheduling cycle over these classes is over."""
        if not self.count and not self._unschedulable:  # the common case: all that waited is placed
            self._classes.clear()
            self._active.clear()
            for groups in self._groups.values():
                groups.clear()
            return
        for pending in classes:
            pending.end_cycle()
            if not pending.queues:
                self.activate(pending)
                self._drop(pending)

    def _drop(self, pending: PendingClass) -> None:
        """The class is active and empty."""
        del self._classes[pending.key], self._active[pending.key]

    # -- active, deferred and unschedulable classes ------------------------------------------------

    def activate_fitting(self) -> None:
        """Activate the unschedulable classes that have got room by what has changed in the cluster."""
        for key in self._unschedulable_classes.with_room() if self._unschedulable else ():
            for pending in list(self._unschedulable[key].values()):
                self.activate(pending)

    def activate(self, pending: PendingClass) -> None:
        """Its tasks may be placed; no effect on an active class."""
        if pending.key in self._active:
            return
        self._active[pending.key] = pending
        if pending.is_deferred or pending.is_withheld:
            pending.is_deferred = pending.is_withheld = False
            return
        pending.unschedulable_since, pending.never_feasible, pending.message = None, False, ""
        pending.joined = 0
        others = self._unschedulable[pending.class_key]
        del others[pending.key]
        if not others:
            del self._unschedulable[pending.class_key]
            self._unschedulable_classes.discard(pending.class_key)

    def mark_deferred(self, pending: PendingClass) -> None:
        """An active class is not to be asked about until it is activated."""
        pending.is_deferred = True
        del self._active[pending.key]

    def mark_withheld(self, pending: PendingClass) -> None:
        """The Order withholds all of an active class: it is not to be asked about until it is activated."""
        pending.is_withheld = True
        del self._active[pending.key]

    def mark_unschedulable(self, pending: PendingClass, now: float, *, never: bool, message: str) -> None:
        """No task of an active class can be placed until the cluster changes.

        `never`: because no node, however empty, may run the class. `message`: the policy's own reason.
        """
        pending.unschedulable_since, pending.never_feasible, pending.message = now, never, message
        pending.is_closed = True
        del self._active[pending.key]
        self._unschedulable.setdefault(pending.class_key, {})[pending.key] = pending
        self._unschedulable_classes.add(pending.class_key)

    def feasible_among(self, class_key: ClassKey, rows: Rows) -> Rows:
        """Those of the rows on which a class may be feasible: of an unschedulable one this is known."""
        return self._unschedulable_classes.feasible_among(class_key, rows)

    def of_class(self, profile: str, class_key: ClassKey) -> Iterator[Task]:
        """The tasks of a profile and class, leads of gangs aside, each class queue in its order; O(tasks)."""
        return iter(self._classes.get((profile, *class_key, None), ()))

    def highest_priority(self, profile: str, class_key: ClassKey) -> float:
        """No pending task of this profile and class has a higher priority; -inf if there is none."""
        pending = self._classes.get((profile, *class_key, None))
        return -inf if pending is None else pending.highest_priority

    def take_joined(self) -> list[tuple[PendingClass, int]]:
        """The unschedulable classes that tasks have joined since the last call, and how many of them wait."""
        taken = []
        for pending in self._joined.values():
            if pending.joined:
                taken.append((pending, min(pending.joined, len(pending))))
                pending.joined = 0
        self._joined.clear()
        return taken

    def unschedulable_since(self, since: float) -> list[PendingClass]:
        """The classes that became unschedulable, or were rechecked, at this time or before; O(classes)."""
        found = (pending for others in self._unschedulable.values() for pending in others.values())
        return [pending for pending in found if (pending.unschedulable_since or 0.0) <= since]
