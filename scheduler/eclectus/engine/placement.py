"""Places: policies are asked, their answers checked, and each is in force before the next is asked for.

A policy is a plug-in. Whatever it asks for in error, or raises, costs the pod at hand a back-off and
gets a Fault with the policy's name; it never reaches a node and never stops the round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from eclectus.engine.class_queues import TaskLane
from eclectus.engine.node_dispatch import Serving
from eclectus.engine.pending import Walk
from eclectus.engine.state import State
from eclectus.engine.validation import vet
from eclectus.framework import Action, Batch, Join, Place, PlacePolicy, Plan, Profile, Refuse
from eclectus.model.errors import PolicyError
from eclectus.model.objects import Task

FAULTS_MOST = 100  # a policy that errs more often in one round is heard no further in it
PARKED_SECONDS_MOST = 300.0  # a lane parked longer is looked at afresh (kube-scheduler's five minutes)

_NO_MORE: Any = object()


class Placing:
    """One round's placements."""

    def __init__(self, state: State, serving: Serving) -> None:
        self._state, self._serving = state, serving
        self._deeds: dict[type, Callable[[Walk, Any], None]] = {
            Place: self._bind,
            Plan: self._plan,
            Join: self._join,
            Batch: self._reserve,
            Refuse: self._refuse,
        }
        state.view.planned_since = state.plans.since

    # -- turns ---------------------------------------------------------------------------------

    def take_turns(self) -> None:
        """Every profile places what it can; the profile whose first task is first in line begins."""
        state = self._state
        state.plans.lift()
        state.held.clear()
        awake = self._awake_lanes().items()
        for name, lanes in sorted(awake, key=_eldest) if len(awake) > 1 else awake:
            self._walk(state.profiles[name], lanes)
        state.plans.prune()

    def flush(self) -> None:
        """Look afresh at lanes parked for long. What only that finds was missed: a defect, counted."""
        state = self._state
        for lane in state.lanes:
            if lane.parked_at is None or state.now - lane.parked_at < PARKED_SECONDS_MOST:
                continue
            lane.parked_at = state.now
            if not state.view.classes.recheck(lane.spec, lane.workload):
                state.counts["missed_wakes"] += len(lane)
                lane.wake()

    def _awake_lanes(self) -> dict[str, list[TaskLane]]:
        """Lanes by profile: active ones, and parked ones whose class has found hope."""
        awake: dict[str, list[TaskLane]] = {}
        for lane in self._state.lanes:
            if lane.parked_at is not None:
                found = self._state.view.classes.of(lane.spec, lane.workload)
                if not found.open_count and not (lane.hopeless and found.feasible_count):
                    continue
                lane.wake()
            awake.setdefault(lane.profile, []).append(lane)
        return awake

    def _walk(self, profile: Profile, lanes: list[TaskLane]) -> None:
        walk, policy = Walk(profile, self._state, lanes), profile.place
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
        self._state.lanes.sweep(lanes)

    def _reject(self, walk: Walk, policy: PlacePolicy, action: Action, error: PolicyError) -> None:
        """The action must not be put in force: its task, if it is one at hand, backs off."""
        self._state.fault(policy, str(error))
        for task in getattr(action, "tasks", (getattr(action, "task", None),)):
            if isinstance(task, Task) and task.uid in walk.offered:
                walk.fail(walk.offered[task.uid][0], f"policy {type(policy).__name__}: {error}")

    def _blame(self, walk: Walk, policy: PlacePolicy, message: str) -> bool:
        """The policy raised: its newest unanswered task backs off. False when there is none to blame."""
        self._state.fault(policy, message)
        if not walk.offered:
            return False
        task, _ = walk.offered[next(reversed(walk.offered))]
        walk.fail(task, f"policy {type(policy).__name__} failed: {message}")
        return True

    def _relieve(self, profile: Profile, walk: Walk) -> None:
        for policy in profile.relieve:
            walk.offered.update(walk.refused)
            try:
                for action in policy.relieve(self._state.view, [task for task, _ in walk.refused.values()]):
                    self._apply(walk, action)
            except Exception as error:  # a plug-in's defect must not stop the others
                self._state.fault(policy, f"{type(error).__name__}: {error}")

    # -- ask, then commit ------------------------------------------------------------------------

    def _apply(self, walk: Walk, action: Action) -> None:
        """Put an action in force; raises PolicyError, having changed nothing, if it must not be."""
        vet(self._state, walk.offered, action)
        self._deeds[type(action)](walk, action)

    def _bind(self, walk: Walk, place: Place) -> None:
        walk.leave(place.task)
        self._state.bind(place.task, int(place.row), place.devices)

    def _plan(self, walk: Walk, plan: Plan) -> None:
        walk.wait(plan.task)
        self._state.plans.make(plan.task, int(plan.row), self._state.now, plan.until)

    def _join(self, walk: Walk, join: Join) -> None:
        walk.leave(join.task)
        self._serving.join(join.task, int(join.row))

    def _reserve(self, walk: Walk, batch: Batch) -> None:
        for task in batch.tasks:
            walk.leave(task)
        rows = [int(row) for row in batch.rows]
        self._state.lines.reserve(batch.tasks, rows, batch.sticky, self._state.now)
        for row in rows:
            self._serving.serve(row)

    def _refuse(self, walk: Walk, refuse: Refuse) -> None:
        state, task, why = self._state, refuse.task, refuse.why
        if not why.of_class:
            walk.leave(task)
            state.back_off(task, "Unschedulable", why.message)
            return
        refused = walk.offered.pop(task.uid)
        lane = refused[1]
        if lane.parked_at is not None:
            return  # with an earlier task of this round: who takes all tasks may refuse each
        walk.refused[task.uid] = refused
        hopeless = not state.view.task_class(task).feasible_count
        if hopeless:
            for waiting in lane:
                state.reports.hurry(waiting.uid, state.now)
        lane.park(state.now, hopeless, why.message)
        state.attempted("unschedulable", task, len(lane))


def _eldest(awake: tuple[str, list[TaskLane]]) -> tuple[float, ...]:
    return min(map(_age, awake[1]))


def _age(lane: TaskLane) -> tuple[float, ...]:
    """By which profiles are compared: what their Orders say of their own tasks cannot be."""
    head = lane.head
    return (inf,) if head is None else (-head.priority, head.created, lane.serial)
