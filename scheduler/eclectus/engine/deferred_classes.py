"""Classes with deferred tasks, and when they must be asked about again.

A policy that says so (`PlacePolicy.defers_until_change`) answers the same as long as nothing changes that its
answer depends on. So its deferred classes fall asleep after a cycle in which no task was placed on the nodes
on which they are feasible: their deferrals stay in force, and they cost nothing. A class is activated

- when a task joins or leaves it (`ClassQueues` activates it);
- at the time `until` of one of its deferrals;
- when a node on which it is feasible has changed, in what pods hold there, in background load or in shape;
- when the speeds of its workload have a new epoch;
- when an account has changed by which its profile's Order ranks groups;
- when a class is asked about that is feasible on one of the same nodes: its tasks may come first, and must
  not see as taken what deferred tasks count on.

So every cycle decides as if all deferred classes were asked about in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

import numpy as np

from eclectus.engine.queues.cycle_order import accounts_of
from eclectus.engine.queues.pending_class import PendingClass
from eclectus.engine.state import State

EVERY_ROW = -1  # as a set of rows


class Sleep(NamedTuple):
    """What may end it. A set of rows is an integer with a bit for each: two are compared in a microsecond."""

    until: float  # the first of the class's deferrals, seconds
    epoch: int  # of the speeds of its workload
    accounts: tuple[int, ...]  # of its profile's Order: how far their logs were
    rows: int  # on which the class is feasible


class DeferredClasses:
    """Which classes sleep."""

    def __init__(self, state: State) -> None:
        self._state, self._class_queues, self._view = state, state.class_queues, state.view
        self._activated: list[PendingClass] = []  # their deferrals end when the next cycle begins
        self._asleep: dict[PendingClass, Sleep] = {}
        self._left: list[PendingClass] = []  # classes that tasks have left in this cycle
        self._shape_cursor = self._usage_cursor = 0
        self.next_until = inf  # when the first deferral ends, seconds; written here only

    # -- activation ------------------------------------------------------------------------------------

    def begin_cycle(self) -> None:
        """Activate every class that must be asked about; its deferrals end."""
        self._left.clear()
        for pending in self._activated:
            self._release(pending)
        self._activated.clear()
        self._class_queues.activate_fitting()
        if self._asleep:
            self._activate()

    def _activate(self) -> None:
        queues, touched, asked = self._class_queues, self._changed_rows(), set[PendingClass]()
        while self._asleep:
            new = [pending for pending in queues.active.values() if pending not in asked]
            asked.update(new)
            touched |= self._rows_of(new)
            activated = [pending for pending in self._asleep if self._must_activate(pending, touched)]
            if not activated:
                return
            for pending in activated:
                del self._asleep[pending]
                self._release(pending)
                if pending.is_asleep:
                    queues.activate(pending)
            queues.activate_fitting()  # the room that the deferred tasks counted on

    def _changed_rows(self) -> int:
        """The rows that have changed since the last cycle."""
        cluster = self._view.cluster
        used = cluster.usage.since(self._usage_cursor)
        if used is None or cluster.shape.head != self._shape_cursor:
            return EVERY_ROW
        return sum(1 << row for row in used)

    def _must_activate(self, pending: PendingClass, touched: int) -> bool:
        sleep = self._asleep[pending]
        return (
            not pending.is_asleep  # a task has joined or left it
            or sleep.until <= self._state.now
            or bool(sleep.rows & touched)
            or sleep.epoch != self._epoch_of(pending)
            or sleep.accounts != self._accounts_of(pending)
        )

    def _release(self, pending: PendingClass) -> None:
        self._state.deferrals.release(pending.deferred)
        pending.deferred.clear()

    # -- falling asleep ----------------------------------------------------------------------------

    def observe(self, asked: Iterable[PendingClass]) -> None:
        """The cycle of a profile over these classes is about to end."""
        for pending in asked:
            if pending.deferred:
                self._activated.append(pending)
            if pending.answered:
                self._left.append(pending)

    def end_cycle(self, *, has_failed: bool) -> None:
        """The cycles of all profiles are over. `has_failed`: a policy; it may answer otherwise next time."""
        self._state.deferrals.end_cycle()
        if self._activated and not has_failed:
            left = self._rows_of(self._left)
            self._activated = [
                pending for pending in self._activated if not self._falls_asleep(pending, left)
            ]
        self._shape_cursor, self._usage_cursor = self._view.cluster.shape.head, self._view.cluster.usage.head
        activated = (until for pending in self._activated for until in pending.deferred.values())
        asleep = (sleep.until for sleep in self._asleep.values())
        self.next_until = min(min(activated, default=inf), min(asleep, default=inf))

    def _falls_asleep(self, pending: PendingClass, left: int) -> bool:
        """`left`: rows that tasks which left in this cycle may have taken."""
        place = self._state.profiles[pending.profile].place
        if not place.defers_until_change or pending.unschedulable_since is not None:
            return False
        rows = self._rows_of([pending])
        if rows & left:
            return False
        until, epoch = min(pending.deferred.values()), self._epoch_of(pending)
        self._asleep[pending] = Sleep(until, epoch, self._accounts_of(pending), rows)
        self._class_queues.let_sleep(pending)
        return True

    # -- what answers depend on --------------------------------------------------------------------

    def _epoch_of(self, pending: PendingClass) -> int:
        return self._view.learn.speeds(pending.class_key[1]).epoch

    def _accounts_of(self, pending: PendingClass) -> tuple[int, ...]:
        order = self._state.profiles[pending.profile].order
        return tuple(account.head for account in accounts_of(order, self._view, self._state.job_work))

    def _rows_of(self, classes: Iterable[PendingClass]) -> int:
        """The rows on which any of the classes is feasible."""
        rows = 0
        for pending in classes:
            feasible = self._view.classes.current(*pending.class_key).feasible
            rows |= int.from_bytes(np.packbits(feasible, bitorder="little").tobytes(), "little")
        return rows
