"""Withheld classes: all of whose tasks their Order withholds, and when it is asked about them again.

Such a class costs nothing until a rank can have changed: when an account has changed by which the Order ranks
groups, when a task joins or leaves the class (by `ClassQueues`), or at the first time `until` of an answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from eclectus.accounts.job_work import JobWork
from eclectus.engine.queues.class_queues import ClassQueues
from eclectus.engine.queues.cycle_order import accounts_of, ranks_of
from eclectus.engine.queues.pending_class import PendingClass
from eclectus.framework import Order, Profile, View

LEAST_SECONDS = 0.01  # between two steps for tasks that are withheld


class _OfProfile:
    """The withheld classes of one profile."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.classes: dict[PendingClass, None] = {}
        self.heads: tuple[int, ...] = ()  # of the logs by which the Order ranks groups
        self.until: dict[PendingClass, float] = {}  # also of active classes of which some tasks are withheld
        self.next_until = inf


class WithheldClasses:
    """The classes of profiles whose Orders withhold tasks, before and after a scheduling cycle."""

    def __init__(
        self, class_queues: ClassQueues, profiles: Mapping[str, Profile], job_work: JobWork | None
    ) -> None:
        self._class_queues, self._job_work = class_queues, job_work
        self._profiles = {
            name: _OfProfile(profile.order)
            for name, profile in profiles.items()
            if profile.order.traits.withholds
        }
        self.next_until = inf  # when the first is to be asked about again, seconds; written here only

    def begin_cycle(self, view: View) -> None:
        """Activate the classes of which a task may have a rank now."""
        for each in self._profiles.values():
            if each.classes:
                self._activate(each, view)

    def _activate(self, each: _OfProfile, view: View) -> None:
        try:
            heads = tuple(log.head for log in accounts_of(each.order, view, self._job_work))
            if heads == each.heads and view.now < each.next_until:
                return
            each.heads = heads
            due = [pending for pending in each.classes if self._may_be_ranked(each, pending, view)]
        except Exception:  # the scheduling cycle asks the Order again, and reports its fault
            due = list(each.classes)
        for pending in due:
            del each.classes[pending]
            if pending.is_withheld:
                self._class_queues.activate(pending)

    def _may_be_ranked(self, each: _OfProfile, pending: PendingClass, view: View) -> bool:
        if not pending.is_withheld:
            return True  # a task has joined or left it
        ranks = ranks_of(pending, each.order, view, accounts_of(each.order, view, self._job_work))
        ranks.touch_due(view.now)
        ranks.refresh()
        each.until[pending] = ranks.next_until
        return ranks.first() is not None

    def end_cycle(self, profile: str, asked: Iterable[PendingClass], view: View) -> None:
        """The cycle of a profile over these classes is over."""
        each = self._profiles.get(profile)
        if each is None:
            return
        try:
            accounts = accounts_of(each.order, view, self._job_work)
            for pending in asked:
                self._observe(each, pending, view)
            each.heads = tuple(log.head for log in accounts)
        except Exception:  # the Order's next scheduling cycle reports it
            each.heads = ()

    def _observe(self, each: _OfProfile, pending: PendingClass, view: View) -> None:
        each.until.pop(pending, None)
        if not pending.queues or pending.key not in self._class_queues.active:
            return
        ranks = ranks_of(pending, each.order, view, accounts_of(each.order, view, self._job_work))
        ranks.refresh()
        if not ranks.withheld:
            return
        each.until[pending] = ranks.next_until
        if ranks.first() is None and not pending.until:
            each.classes[pending] = None
            self._class_queues.mark_withheld(pending)

    def end_step(self, now: float) -> None:
        """The cycles of all profiles are over, as far as this step goes."""
        for each in self._profiles.values():
            each.until = {
                pending: until
                for pending, until in each.until.items()
                if pending.is_withheld or pending.key in self._class_queues.active
            }
            each.next_until = min(each.until.values(), default=inf)
        found = min((each.next_until for each in self._profiles.values()), default=inf)
        self.next_until = max(found, now + LEAST_SECONDS)
