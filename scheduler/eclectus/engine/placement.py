"""Placement: Place policies are asked, and each action is validated and put in force before the next one.

A policy is a plug-in. What it asks for in error, or raises, costs the task at hand a back-off and becomes a
Fault with the policy's name. It reaches no node and does not stop the scheduling cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import nsmallest
from math import inf
from operator import attrgetter
from typing import Any

from eclectus.engine.node_dispatch import NodeDispatch
from eclectus.engine.nominations import Nominations
from eclectus.engine.queues.deferred_classes import DeferredClasses
from eclectus.engine.queues.pending_class import PendingClass
from eclectus.engine.scheduling_cycle import SchedulingCycle
from eclectus.engine.state import State
from eclectus.engine.validation import validate
from eclectus.framework import Action, Defer, Enqueue, Place, PlacePolicy, Profile, ReserveMany, Unschedulable
from eclectus.model.errors import PolicyError
from eclectus.model.objects import Task

FAULTS_MOST = 100  # after so many errors in one cycle the policy is not asked again in it
UNSCHEDULABLE_SECONDS_MOST = 300.0  # after that a class is rechecked (kube-scheduler: five minutes)
RECHECKS_MOST = 16  # classes rechecked at a time: tens of milliseconds on 15,000 nodes

_NO_MORE: Any = object()


class Placement:
    """The scheduling cycles of all profiles. `_handlers`: type of action -> what puts it in force."""

    def __init__(self, state: State, node_dispatch: NodeDispatch, nominations: Nominations) -> None:
        self._state, self._node_dispatch, self._nominations = state, node_dispatch, nominations
        self._deferred = DeferredClasses(
            state.view, state.class_queues, state.deferrals, state.profiles, state.job_work
        )
        self._handlers: Mapping[type, Callable[[SchedulingCycle, Any], None]] = {
            Place: self._place,
            Defer: self._defer,
            Enqueue: self._enqueue,
            ReserveMany: self._reserve_many,
            Unschedulable: self._unschedulable,
        }

    @property
    def next_until(self) -> float:
        """The first time at which a deferred task asks to be placed again, seconds; inf for never."""
        return self._deferred.next_until

    # -- cycles --------------------------------------------------------------------------------

    def place_pending(self) -> None:
        """Run one cycle of every profile, beginning with the profile whose first task is the eldest."""
        state = self._state
        self._deferred.begin_cycle()
        for pending, joined in state.class_queues.take_joined():
            # The answer for the class is the answer for tasks that came later, as if each had been tried.
            state.count_attempts("unschedulable", pending.profile, joined)
            state.refused(pending.profile, pending.class_key)
            self._activate_above_nominations((pending,))
        if self._nominations.take_new():
            self._activate_above_nominations(state.class_queues.unschedulable_since(inf))
        by_profile: dict[str, list[PendingClass]] = {}
        for pending in state.class_queues.active.values():
            by_profile.setdefault(pending.profile, []).append(pending)
        active, faults = by_profile.items(), state.counters.faults
        for name, classes in sorted(active, key=_eldest) if len(active) > 1 else active:
            self._run_cycle(state.profiles[name], classes)
        if state.deferrals.rows or state.deferrals.released:
            self._deferred.end_cycle(has_failed=state.counters.faults > faults)

    def _activate_above_nominations(self, classes: Iterable[PendingClass]) -> None:
        """Room held for pods of lower priority is free to those of higher that were refused before."""
        if not self._state.placed.has_nominated:
            return
        for pending in classes:
            highest = max(pending, key=attrgetter("priority"))
            if self._nominations.row_held_for_lower(highest) is not None:
                self._state.class_queues.activate(pending)

    def recheck(self) -> None:
        """Recheck classes that have long been unschedulable; one that fits now is a defect and is counted.

        A class costs O(nodes), so only some are rechecked at a time, those first that were not for longest.
        """
        state, queues = self._state, self._state.class_queues
        due = queues.unschedulable_since(state.now - UNSCHEDULABLE_SECONDS_MOST)
        for pending in nsmallest(RECHECKS_MOST, due, key=attrgetter("unschedulable_since")):
            if state.view.classes.recheck(*pending.class_key):
                pending.unschedulable_since = state.now
            else:
                state.counters.missed_activations += len(pending)
                queues.activate(pending)

    def _run_cycle(self, profile: Profile, classes: list[PendingClass]) -> None:
        cycle, policy = SchedulingCycle(profile, self._state, classes), profile.place
        answers: Iterator[Action] | None = None
        faults = 0
        while faults < FAULTS_MOST:
            try:
                if answers is None:
                    answers = iter(policy.place(self._state.view, cycle))
                action = next(answers, _NO_MORE)
            except Exception as error:  # a plug-in's defect must not stop the others
                faults += 1
                if not self._policy_raised(cycle, policy, f"{type(error).__name__}: {error}"):
                    break
                answers = None  # a generator that has raised is finished
                continue
            if action is _NO_MORE:
                break
            try:
                validate(self._state, cycle.offered, action)
                self._handlers[type(action)](cycle, action)
            except PolicyError as error:
                faults += 1
                self._reject(cycle, policy, action, error)
        if faults == FAULTS_MOST:
            self._policy_raised(cycle, policy, f"erred {faults} times in one scheduling cycle")
        if self._state.deferrals.rows or len(self._state.profiles) > 1:
            self._deferred.observe(classes)
        self._state.class_queues.end_cycle(classes)

    def _reject(
        self, cycle: SchedulingCycle, policy: PlacePolicy, action: Action, error: PolicyError
    ) -> None:
        """The action is not put in force: each task of it that was offered backs off."""
        self._state.fault(policy, str(error))
        for task in getattr(action, "tasks", (getattr(action, "task", None),)):
            if isinstance(task, Task) and task.uid in cycle.offered:
                cycle.fail(cycle.offered[task.uid][0], f"policy {type(policy).__name__}: {error}")

    def _policy_raised(self, cycle: SchedulingCycle, policy: PlacePolicy, message: str) -> bool:
        """The task that was offered last and not answered backs off; False if there is none."""
        self._state.fault(policy, message)
        if not cycle.offered:
            return False
        task, _ = cycle.offered[next(reversed(cycle.offered))]
        cycle.fail(task, f"policy {type(policy).__name__} failed: {message}")
        return True

    # -- action handlers: each action has been validated ---------------------------------------

    def _place(self, cycle: SchedulingCycle, place: Place) -> None:
        cycle.remove(place.task)
        self._state.bind(place.task, int(place.row), place.devices)

    def _defer(self, cycle: SchedulingCycle, defer: Defer) -> None:
        cycle.defer(defer.task, int(defer.row), defer.until)
        self._state.waits(defer.task)

    def _enqueue(self, cycle: SchedulingCycle, enqueue: Enqueue) -> None:
        cycle.remove(enqueue.task)
        self._node_dispatch.enqueue(enqueue.task, int(enqueue.row))
        self._state.waits(enqueue.task)

    def _reserve_many(self, cycle: SchedulingCycle, reserve: ReserveMany) -> None:
        for task in reserve.tasks:
            cycle.remove(task)
        rows = [int(row) for row in reserve.rows]
        self._state.node_queues.reserve(reserve.tasks, rows, reserve.sticky, self._state.now)
        for row in rows:
            self._node_dispatch.dispatch(row)
        self._state.waits(reserve.tasks[0])

    def _unschedulable(self, cycle: SchedulingCycle, unschedulable: Unschedulable) -> None:
        task = unschedulable.task
        row = self._nominations.row_held_for_lower(task)
        if row is not None:
            cycle.remove(task)
            self._state.bind(task, row)
        else:
            cycle.mark_unschedulable(task, unschedulable.reason.message)


def _eldest(active: tuple[str, list[PendingClass]]) -> tuple[float, ...]:
    return min(pending.eldest() for pending in active[1])
