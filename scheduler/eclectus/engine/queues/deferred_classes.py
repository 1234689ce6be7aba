"""Deferred classes: when they must be asked about again.

A policy that says so (`PlaceTraits.defers_until_change`) answers the same as long as nothing changes that its
answer depends on. So a class with deferred tasks is marked as deferred after a cycle in which no task was
placed on the nodes on which it is feasible: its deferrals stay in force, and it costs nothing. It becomes
active

- when a task joins or leaves it (by `ClassQueues`);
- at the time `until` of one of its deferrals;
- when a node on which it is feasible has changed, in what pods hold there, in background load or in shape;
- when a pod has come or left that its rules about other pods count, wherever that was;
- when the speeds of its workload, or its profile's Place, have a new epoch;
- when an account has changed by which its profile's Order ranks groups;
- when a class is asked about that is feasible on one of the same nodes: its tasks may come first, and must
  not see as taken what deferred tasks count on.

So every cycle decides as if all deferred classes were asked about in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

import numpy as np

from eclectus.accounts.job_work import JobWork
from eclectus.engine.queues.class_queues import ClassQueues
from eclectus.engine.queues.cycle_order import accounts_of
from eclectus.engine.queues.deferrals import Deferrals
from eclectus.engine.queues.pending_class import PendingClass
from eclectus.framework import Profile, View

EVERY_ROW = -1  # as a set of rows


class Answered(NamedTuple):
    """What of the conditions below is known when a class has been asked about."""

    version: int  # of the class
    epochs: tuple[int, int]
    accounts: tuple[int, ...]
    other_pods: int


class Conditions(NamedTuple):
    """What the answers to a deferred class depended on, beside its tasks.

    A set of rows is an integer with a bit for each row: two are compared in less than a microsecond.
    """

    until: float  # the first end of a deferral, seconds
    epochs: tuple[int, int]  # of the speeds of its workload, and of its profile's Place
    accounts: tuple[int, ...]  # of its profile's Order: how far their logs were
    rows: int  # on which the class is feasible
    other_pods: int  # the version of its rules about other pods


class DeferredClasses:
    """The classes with deferred tasks, before and after a scheduling cycle."""

    def __init__(
        self,
        view: View,
        class_queues: ClassQueues,
        deferrals: Deferrals,
        profiles: Mapping[str, Profile],
        job_work: JobWork | None,
    ) -> None:
        self._view, self._class_queues, self._deferrals = view, class_queues, deferrals
        self._profiles, self._job_work = profiles, job_work
        # Active: their deferrals end when the next cycle begins.
        self._to_ask: dict[PendingClass, Answered] = {}
        self._deferred: dict[PendingClass, Conditions] = {}
        self._left: dict[PendingClass, None] = {}  # classes that tasks have left in this cycle, in order
        self._shape_cursor = self._usage_cursor = 0
        self._missed = 0  # rows that have changed between the steps of the cycle
        self.next_until = inf  # when the first deferral ends, seconds; written here only

    @property
    def has_changed(self) -> bool:
        """Whether nodes have changed between the steps of the cycle: not all classes have seen that."""
        return bool(self._missed)

    # -- before a cycle ----------------------------------------------------------------------------

    def begin_cycle(self, view: View) -> None:
        """Activate every class that must be asked about in this step; its deferrals end."""
        self._view = view
        self._left.clear()
        for pending in self._to_ask:
            self._release(pending)
        self._to_ask.clear()
        self._class_queues.activate_fitting()
        if self._deferred:
            self._activate()
        self._missed = 0

    def resume_cycle(self, view: View) -> None:
        """The cycle goes on in another step."""
        self._view = view
        self._missed |= self._changed_rows()

    def _activate(self) -> None:
        """Activate deferred classes until none is left to which an answer could be another one."""
        queues, touched, asked = self._class_queues, self._changed_rows() | self._missed, set[PendingClass]()
        while self._deferred:
            new = [pending for pending in queues.active.values() if pending not in asked]
            asked.update(new)
            touched |= self._rows_of(new)
            due = [pending for pending in self._deferred if self._is_due(pending, touched)]
            if not due:
                return
            for pending in due:
                del self._deferred[pending]
                self._release(pending)
                if pending.is_deferred:
                    queues.activate(pending)
            queues.activate_fitting()  # the room that the deferred tasks counted on

    def _changed_rows(self) -> int:
        """The rows that have changed since the last cycle."""
        cluster = self._view.cluster
        used = cluster.usage.since(self._usage_cursor)
        if used is None or cluster.shape.head != self._shape_cursor:
            return EVERY_ROW
        return sum(1 << row for row in used)

    def _is_due(self, pending: PendingClass, touched: int) -> bool:
        before = self._deferred[pending]
        return (
            not pending.is_deferred  # a task has joined or left it
            or before.until <= self._view.now
            or bool(before.rows & touched)
            or before.epochs != self._epochs_of(pending)
            or before.accounts != self._accounts_of(pending)
            or before.other_pods != self._other_pods_of(pending)
        )

    def _release(self, pending: PendingClass) -> None:
        self._deferrals.release(pending.until)
        pending.until.clear()

    # -- after a cycle -----------------------------------------------------------------------------

    def observe(self, asked: Iterable[PendingClass]) -> None:
        """The cycle of a profile over these classes is about to end."""
        for pending in asked:
            if pending.until and pending not in self._to_ask:  # of a cycle in slices, as it was at first
                self._to_ask[pending] = Answered(
                    pending.version,
                    self._epochs_of(pending),
                    self._accounts_of(pending),
                    self._other_pods_of(pending),
                )
            if pending.answered:
                self._left[pending] = None

    def end_step(self) -> None:
        """What has changed up to now, the classes that are asked about in this cycle have seen or done."""
        self._shape_cursor, self._usage_cursor = self._view.cluster.shape.head, self._view.cluster.usage.head

    def end_cycle(self, *, has_failed: bool) -> None:
        """The cycles of all profiles are over. `has_failed`: a policy; it may answer otherwise next time."""
        self._deferrals.end_cycle()
        if self._to_ask and not has_failed:
            left = self._rows_of(self._left)
            self._to_ask = {
                pending: answered
                for pending, answered in self._to_ask.items()
                if not self._defer(pending, answered, left)
            }
        self.end_step()
        active = (until for pending in self._to_ask for until in pending.until.values())
        deferred = (conditions.until for conditions in self._deferred.values())
        self.next_until = min(min(active, default=inf), min(deferred, default=inf))

    def _defer(self, pending: PendingClass, answered: Answered, left: int) -> bool:
        """Mark the class as deferred if its answers can only stay the same; whether it is.

        `left`: rows that tasks which left in this cycle may have taken.
        """
        place = self._profiles[pending.profile].place
        if not place.traits.defers_until_change or pending.unschedulable_since is not None:
            return False
        if not pending.until or pending.version != answered.version:
            return False
        rows = self._rows_of([pending])
        if rows & left:
            return False
        until = min(pending.until.values())
        conditions = Conditions(until, answered.epochs, answered.accounts, rows, self._other_pods_of(pending))
        if conditions.other_pods != answered.other_pods:
            return False
        self._deferred[pending] = conditions
        self._class_queues.mark_deferred(pending)
        return True

    # -- what answers depend on --------------------------------------------------------------------

    def _epochs_of(self, pending: PendingClass) -> tuple[int, int]:
        place = self._profiles[pending.profile].place
        return self._view.learn.speeds(pending.class_key[1]).epoch, place.epoch(self._view)

    def _accounts_of(self, pending: PendingClass) -> tuple[int, ...]:
        order = self._profiles[pending.profile].order
        return tuple(account.head for account in accounts_of(order, self._view, self._job_work))

    def _other_pods_of(self, pending: PendingClass) -> int:
        """Another number when a pod that the class counts has come or left; 0 if it counts none."""
        spec = pending.class_key[0]
        if not spec.has_pod_rules and not spec.prefers_by_pods:
            return 0
        return self._view.classes.current(*pending.class_key).version_of_others

    def _rows_of(self, classes: Iterable[PendingClass]) -> int:
        """The rows on which any of the classes is feasible."""
        rows, shape = 0, self._view.cluster.shape.head
        for pending in classes:
            task_class = self._view.classes.current(*pending.class_key)
            known: tuple[int, int] | None = task_class.derived.get(self)
            if known is None or known[0] != shape:
                packed = np.packbits(task_class.feasible, bitorder="little").tobytes()
                known = task_class.derived[self] = shape, int.from_bytes(packed, "little")
            rows |= known[1]
        return rows
