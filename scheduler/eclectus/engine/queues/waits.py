"""Tasks that wait by the answer of a policy, and when their classes are asked about again.

A Place policy *defers* a task: it waits for a busy node, on which it counts as `tentative` until its class is
asked about again, or for none in particular. An Order *withholds* a group. Nothing of both is persisted.

A Place policy that says so (`PlaceTraits.defers_until_change`) answers the same as long as nothing changes
that its answer depends on. So a class with deferred tasks is marked as deferred after a cycle in which no
task was placed on the nodes on which it is feasible: its deferrals stay in force, and it costs nothing. It
becomes active

- when a task joins or leaves it (by `ClassQueues`);
- at the time `until` of one of its deferrals;
- when a node on which it is feasible has changed, in what pods hold there, in background load or in shape;
- when a pod has come or left that its rules about other pods count, wherever that was;
- when the speeds of its workload, or its profile's Place, have a new epoch;
- when an account has changed by which its profile's Order ranks groups;
- when a class is asked about that is feasible on one of the same nodes: its tasks may come first, and must
  not see as taken what deferred tasks count on.

So every cycle decides as if all deferred classes were asked about in it.

A class of which the Order withholds every task costs nothing until a rank can have changed: when an account
has changed by which the Order ranks groups, when a task joins or leaves the class (by `ClassQueues`), or at
the first time `until` of an answer.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import NamedTuple

import numpy as np

from eclectus.cluster.nodes import Cluster
from eclectus.engine.queues.class_queues import ClassQueues, PendingClass
from eclectus.engine.queues.cycle_order import accounts_of, ranks_of
from eclectus.feasibility.task_class import ClassCache
from eclectus.framework import Order, Profile, View, Wait
from eclectus.model.objects import Task


class Deferrals:
    """The row each deferred task waits for, None for no one row; `since` outlives the cycle."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waits: dict[str, tuple[Task, Wait]] = {}
        self.waits: Mapping[str, tuple[Task, Wait]] = self._waits  # uid -> the task and its wait
        self._since: dict[str, float] = {}
        self.since: Mapping[str, float] = self._since  # uid -> since when deferred in every cycle, seconds
        self.released: list[str] = []  # since the last cycle has ended; written here only

    def add(self, task: Task, wait: Wait, now: float) -> None:
        """The task waits, for a row or for none."""
        self._waits[task.uid] = (task, wait)
        self._since.setdefault(task.uid, now)
        if wait.row is not None:
            self._cluster.add_tentative(int(wait.row), task.spec.requests)

    def discard(self, uid: str) -> None:
        """The task is placed or gone."""
        if self._since:
            self._free(uid)
            self._since.pop(uid, None)

    def release(self, uids: Iterable[str]) -> None:
        """These tasks are about to be decided again. Their `since` is kept until `end_cycle`."""
        for uid in uids:
            self._free(uid)
            self.released.append(uid)

    def end_cycle(self) -> None:
        """Forget `since` of tasks that were released and not deferred again."""
        for uid in self.released:
            if uid not in self._waits:
                self._since.pop(uid, None)
        self.released.clear()

    def _free(self, uid: str) -> None:
        deferred = self._waits.pop(uid, None)
        if deferred is not None:
            task, wait = deferred
            if wait.row is not None:
                self._cluster.add_tentative(int(wait.row), task.spec.requests, -1)


class TasksBesideRoom:
    """Tasks that wait although a node has room for them: deferred ones, and those held for their data."""

    def __init__(
        self,
        classes: ClassCache,
        class_queues: ClassQueues,
        deferrals: Deferrals,
        holding: Mapping[PendingClass, object],
    ) -> None:
        """`holding`: the classes with tasks that may be held."""
        self._classes = classes
        self._class_queues = class_queues
        self._deferrals = deferrals
        self._holding = holding

    @property
    def version(self) -> tuple[int, ...]:
        """Another one when they may be others; empty where there are none."""
        deferred = len(self._deferrals.waits)
        if not (deferred or self._holding):
            return ()
        return deferred, self._classes.cluster.usage.head, self._classes.cluster.shape.head

    def __iter__(self) -> Iterator[Task]:
        """With those behind them: of what is said of a task the others of its class wait too. O(classes)."""
        for pending in self._class_queues if self.version else ():
            by_choice = pending.waits or pending.held
            if by_choice and self._classes.current(*pending.class_key).fits_now_count:
                yield from pending


EVERY_ROW = -1  # as a set of rows


class Conditions(NamedTuple):
    """What the answers to a class depend on, beside the nodes."""

    version: int  # of the class: of its tasks
    epochs: tuple[int, int]  # of the speeds of its workload, and of its profile's Place
    accounts: tuple[int, ...]  # of its profile's Order: how far their logs are
    other_pods: int  # the version of its rules about other pods; 0 if it has none


class DeferredClass(NamedTuple):
    """What is known of a deferred class.

    A set of rows is an integer with a bit for each row: two are compared in less than a microsecond.
    """

    until: float  # the first end of a deferral, seconds
    rows: int  # on which the class is feasible
    conditions: Conditions  # when it was asked about


class DeferredClasses:
    """The classes with deferred tasks, before and after a scheduling cycle."""

    def __init__(
        self,
        view: View,
        class_queues: ClassQueues,
        deferrals: Deferrals,
        profiles: Mapping[str, Profile],
    ) -> None:
        self.view = view  # of this step
        self._class_queues = class_queues
        self._deferrals = deferrals
        self._profiles = profiles
        # Active: their deferrals end when the next cycle begins.
        self._to_ask: dict[PendingClass, Conditions] = {}
        self._deferred: dict[PendingClass, DeferredClass] = {}
        self._left: dict[PendingClass, None] = {}  # classes that tasks have left in this cycle, in order
        self._shape_cursor = self._usage_cursor = 0
        self._missed = 0  # rows that have changed between the steps of the cycle
        self.next_until = inf  # when the first deferral ends, seconds; written here only
        self.is_used = False  # otherwise `begin_cycle` would find nothing; written here only

    @property
    def has_changed(self) -> bool:
        """Whether nodes have changed between the steps of the cycle: not all classes have seen that."""
        return bool(self._missed)

    # -- before a cycle ----------------------------------------------------------------------------

    def begin_cycle(self, view: View) -> None:
        """Activate every class that must be asked about in this step; its deferrals end."""
        self.view = view
        self._left.clear()
        for pending in self._to_ask:
            self._release(pending)
        self._to_ask.clear()
        self._class_queues.activate_fitting()
        if self._deferred:
            self._activate()
        self._missed = 0
        self.is_used = bool(self._deferred)

    def resume_cycle(self, view: View) -> None:
        """The cycle goes on in another step."""
        self.view = view
        self._missed |= self._changed_rows()
        self.is_used = True

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
        cluster = self.view.cluster
        used = cluster.usage.since(self._usage_cursor)
        if used is None or cluster.shape.head != self._shape_cursor:
            return EVERY_ROW
        return sum(1 << row for row in used)

    def _is_due(self, pending: PendingClass, touched: int) -> bool:
        before = self._deferred[pending]
        return (
            not pending.is_deferred  # a task has joined or left it
            or before.until <= self.view.now
            or bool(before.rows & touched)
            or before.conditions != self._conditions(pending)
        )

    def _release(self, pending: PendingClass) -> None:
        self._deferrals.release(pending.waits)
        pending.waits.clear()

    # -- after a cycle -----------------------------------------------------------------------------

    def observe(self, asked: Iterable[PendingClass]) -> None:
        """The cycle of a profile over these classes is about to end."""
        self.is_used = True
        for pending in asked:
            if pending.waits and pending not in self._to_ask:  # of a cycle in slices, as it was at first
                self._to_ask[pending] = self._conditions(pending)
            if pending.answered:
                self._left[pending] = None

    def end_step(self) -> None:
        """What has changed up to now, the classes that are asked about in this cycle have seen or done."""
        self._shape_cursor, self._usage_cursor = self.view.cluster.shape.head, self.view.cluster.usage.head

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
        active = (wait.until for pending in self._to_ask for wait in pending.waits.values())
        deferred = (each.until for each in self._deferred.values())
        self.next_until = min(min(active, default=inf), min(deferred, default=inf))

    def _defer(self, pending: PendingClass, answered: Conditions, left: int) -> bool:
        """Mark the class as deferred if its answers can only stay the same; whether it is.

        `left`: rows that tasks which left in this cycle may have taken.
        """
        place = self._profiles[pending.profile].place
        if not place.traits.defers_until_change or pending.unschedulable_since is not None:
            return False
        if not pending.waits or pending.version != answered.version:
            return False
        rows = self._rows_of([pending])
        if rows & left:
            return False
        until = min(wait.until for wait in pending.waits.values())
        if self._other_pods_of(pending) != answered.other_pods:
            return False
        self._deferred[pending] = DeferredClass(until, rows, answered)
        self._class_queues.mark_deferred(pending)
        return True

    # -- what answers depend on --------------------------------------------------------------------

    def _conditions(self, pending: PendingClass) -> Conditions:
        profile, view = self._profiles[pending.profile], self.view
        epochs = view.learn.speeds(pending.class_key[1]).epoch, profile.place.epoch(view)
        accounts = tuple(account.head for account in accounts_of(profile.order, view))
        return Conditions(pending.version, epochs, accounts, self._other_pods_of(pending))

    def _other_pods_of(self, pending: PendingClass) -> int:
        """Another number when a pod that the class counts has come or left; 0 if it counts none."""
        spec = pending.class_key[0]
        if not spec.has_pod_rules and not spec.prefers_by_pods:
            return 0
        return self.view.classes.current(*pending.class_key).version_of_others

    def _rows_of(self, classes: Iterable[PendingClass]) -> int:
        """The rows on which any of the classes is feasible."""
        rows, shape = 0, self.view.cluster.shape.head
        for pending in classes:
            task_class = self.view.classes.current(*pending.class_key)
            known: tuple[int, int] | None = task_class.derived.get(self)
            if known is None or known[0] != shape:
                packed = np.packbits(task_class.feasible, bitorder="little").tobytes()
                known = task_class.derived[self] = shape, int.from_bytes(packed, "little")
            rows |= known[1]
        return rows


LEAST_SECONDS = 0.01  # between two steps for tasks that are withheld


def may_withhold(order: Order) -> bool:
    """Whether tasks of an Order may have no rank: by its answer, or because their pool is at its limit."""
    return order.traits.withholds or "pools" in order.traits.needs


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

    def __init__(self, class_queues: ClassQueues, profiles: Mapping[str, Profile]) -> None:
        self._class_queues = class_queues
        self._profiles = {
            name: _OfProfile(profile.order)
            for name, profile in profiles.items()
            if may_withhold(profile.order)
        }
        self.next_until = inf  # when the first is to be asked about again, seconds; written here only

    def begin_cycle(self, view: View) -> None:
        """Activate the classes of which a task may have a rank now."""
        for each in self._profiles.values():
            if each.classes:
                self._activate(each, view)

    def _activate(self, each: _OfProfile, view: View) -> None:
        try:
            heads = tuple(log.head for log in accounts_of(each.order, view))
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
        ranks = ranks_of(pending, each.order, view, accounts_of(each.order, view))
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
            accounts = accounts_of(each.order, view)
            for pending in asked:
                self._observe(each, pending, view)
            each.heads = tuple(log.head for log in accounts)
        except Exception:  # the Order's next scheduling cycle reports it
            each.heads = ()

    def _observe(self, each: _OfProfile, pending: PendingClass, view: View) -> None:
        each.until.pop(pending, None)
        if not pending.queues or pending.key not in self._class_queues.active:
            return
        ranks = ranks_of(pending, each.order, view, accounts_of(each.order, view))
        ranks.refresh()
        if not ranks.withholds:
            return
        each.until[pending] = ranks.next_until
        if ranks.first() is None and not pending.waits:
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
