"""Places: policies are asked, their answers checked, and each is in force before the next is asked for.

A policy is a plug-in. Whatever it asks for in error, or raises, costs the pod at hand a back-off and
gets a Fault with the policy's name; it never reaches a node and never stops the round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from eclectus.engine.class_queues import SortedClassQueue
from eclectus.engine.node_dispatch import NodeDispatch
from eclectus.engine.pending import SchedulingCycle
from eclectus.engine.state import State
from eclectus.engine.validation import validate
from eclectus.framework import Action, Defer, Enqueue, Place, PlacePolicy, Profile, ReserveMany, Unschedulable
from eclectus.model.errors import PolicyError
from eclectus.model.objects import Task

FAULTS_MOST = 100  # a policy that errs more often in one round is heard no further in it
PARKED_SECONDS_MOST = 300.0  # a lane parked longer is looked at afresh (kube-scheduler's five minutes)

_NO_MORE: Any = object()


class Placement:
    """One round's placements."""

    def __init__(self, state: State, serving: NodeDispatch) -> None:
        self._state, self._serving = state, serving
        self._handlers: dict[type, Callable[[SchedulingCycle, Any], None]] = {
            Place: self._bind,
            Defer: self._defer,
            Enqueue: self._enqueue,
            ReserveMany: self._reserve,
            Unschedulable: self._mark_unschedulable,
        }
        state.view.deferred_since = state.deferrals.since

    # -- turns ---------------------------------------------------------------------------------

    def place_pending(self) -> None:
        """Every profile places what it can; the profile whose first task is first in line begins."""
        state = self._state
        state.deferrals.clear()
        state.held.clear()
        awake = self._active_queues().items()
        for name, lanes in sorted(awake, key=_eldest) if len(awake) > 1 else awake:
            self._run_cycle(state.profiles[name], lanes)
        state.deferrals.prune()

    def flush(self) -> None:
        """Look afresh at lanes parked for long. What only that finds was missed: a defect, counted."""
        state = self._state
        for lane in state.class_queues:
            if lane.unschedulable_since is None or state.now - lane.unschedulable_since < PARKED_SECONDS_MOST:
                continue
            lane.unschedulable_since = state.now
            if not state.view.classes.recheck(lane.spec, lane.workload):
                state.counts["missed_wakes"] += len(lane)
                lane.activate()

    def _active_queues(self) -> dict[str, list[SortedClassQueue]]:
        """Lanes by profile: active ones, and parked ones whose class has found hope."""
        awake: dict[str, list[SortedClassQueue]] = {}
        for lane in self._state.class_queues:
            if lane.unschedulable_since is not None:
                found = self._state.view.classes.current(lane.spec, lane.workload)
                if not found.fits_now_count and not (lane.never_feasible and found.feasible_count):
                    continue
                lane.activate()
            awake.setdefault(lane.profile, []).append(lane)
        return awake

    def _run_cycle(self, profile: Profile, lanes: list[SortedClassQueue]) -> None:
        walk, policy = SchedulingCycle(profile, self._state, lanes), profile.place
        answers: Iterator[Action] | None = None
        faults = 0
        while faults < FAULTS_MOST:
            try:
                if answers is None:
                    answers = iter(policy.place(self._state.view, walk))
                action = next(answers, _NO_MORE)
            except Exception as error:  # a plug-in's defect must not stop the others
                faults += 1
                if not self._blame(walk, policy, f"{type(error).__name__}: {error}"):
                    break
                answers = None  # a generator that has raised is dead
                continue
            if action is _NO_MORE:
                break
            try:
                self._apply(walk, action)
            except PolicyError as error:
                faults += 1
                self._reject(walk, policy, action, error)
        if faults == FAULTS_MOST:
            self._blame(walk, policy, f"erred {faults} times in one round")
        if profile.relieve:
            self._relieve(profile, walk)
        self._state.class_queues.end_cycle(lanes)

    def _reject(self, walk: SchedulingCycle, policy: PlacePolicy, action: Action, error: PolicyError) -> None:
        """The action must not be put in force: its task, if it is one at hand, backs off."""
        self._state.fault(policy, str(error))
        for task in getattr(action, "tasks", (getattr(action, "task", None),)):
            if isinstance(task, Task) and task.uid in walk.offered:
                walk.fail(walk.offered[task.uid][0], f"policy {type(policy).__name__}: {error}")

    def _blame(self, walk: SchedulingCycle, policy: PlacePolicy, message: str) -> bool:
        """The policy raised: its newest unanswered task backs off. False when there is none to blame."""
        self._state.fault(policy, message)
        if not walk.offered:
            return False
        task, _ = walk.offered[next(reversed(walk.offered))]
        walk.fail(task, f"policy {type(policy).__name__} failed: {message}")
        return True

    def _relieve(self, profile: Profile, walk: SchedulingCycle) -> None:
        for policy in profile.relieve:
            walk.offered.update(walk.refused)
            try:
                for action in policy.relieve(self._state.view, [task for task, _ in walk.refused.values()]):
                    self._apply(walk, action)
            except Exception as error:  # a plug-in's defect must not stop the others
                self._state.fault(policy, f"{type(error).__name__}: {error}")

    # -- ask, then commit ------------------------------------------------------------------------

    def _apply(self, walk: SchedulingCycle, action: Action) -> None:
        """Put an action in force; raises PolicyError, having changed nothing, if it must not be."""
        validate(self._state, walk.offered, action)
        self._handlers[type(action)](walk, action)

    def _bind(self, walk: SchedulingCycle, place: Place) -> None:
        walk.remove(place.task)
        self._state.bind(place.task, int(place.row), place.devices)

    def _defer(self, walk: SchedulingCycle, plan: Defer) -> None:
        walk.keep(plan.task)
        self._state.deferrals.add(plan.task, int(plan.row), self._state.now, plan.until)

    def _enqueue(self, walk: SchedulingCycle, join: Enqueue) -> None:
        walk.remove(join.task)
        self._serving.enqueue(join.task, int(join.row))

    def _reserve(self, walk: SchedulingCycle, batch: ReserveMany) -> None:
        for task in batch.tasks:
            walk.remove(task)
        rows = [int(row) for row in batch.rows]
        self._state.node_queues.reserve(batch.tasks, rows, batch.sticky, self._state.now)
        for row in rows:
            self._serving.dispatch(row)

    def _mark_unschedulable(self, walk: SchedulingCycle, refuse: Unschedulable) -> None:
        state, task, why = self._state, refuse.task, refuse.reason
        if not why.of_class:
            walk.remove(task)
            state.back_off(task, "Unschedulable", why.message)
            return
        refused = walk.offered.pop(task.uid)
        lane = refused[1]
        if lane.unschedulable_since is not None:
            return  # with an earlier task of this round: who takes all tasks may refuse each
        walk.refused[task.uid] = refused
        hopeless = not state.view.task_class(task).feasible_count
        if hopeless:
            for waiting in lane:
                state.reports.expedite(waiting.uid, state.now)
        lane.mark_unschedulable(state.now, hopeless, why.message)
        state.attempted("unschedulable", task, len(lane))


def _eldest(awake: tuple[str, list[SortedClassQueue]]) -> tuple[float, ...]:
    return min(map(_age, awake[1]))


def _age(lane: SortedClassQueue) -> tuple[float, ...]:
    """By which profiles are compared: what their Orders say of their own tasks cannot be."""
    head = lane.head
    return (inf,) if head is None else (-head.priority, head.created, lane.serial)
