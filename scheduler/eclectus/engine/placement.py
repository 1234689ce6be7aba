"""Placement: Place policies are asked, and each action is validated and put in force before the next one.

A policy is a plug-in. What it asks for in error, or raises, costs the task at hand a back-off and becomes a
Fault with the policy's name. It reaches no node and does not stop the scheduling cycle.
"""

from collections.abc import Iterator
from heapq import nsmallest
from math import inf
from operator import attrgetter
from typing import Any

from eclectus.engine.effects import Effects
from eclectus.engine.gang_attempts import GangAttempts
from eclectus.engine.nominations import Nominations
from eclectus.engine.queues.class_queues import PendingClass
from eclectus.engine.queues.waits import DeferredClasses, WithheldClasses, may_withhold
from eclectus.engine.scheduling_cycle import CycleSlices, SchedulingCycle
from eclectus.engine.state import State
from eclectus.framework import Action, Place, Profile
from eclectus.model.errors import PolicyError
from eclectus.model.objects import Task

FAULTS_MOST = 100  # after so many errors in one cycle the policy is not asked again in it
UNSCHEDULABLE_SECONDS_MOST = 300.0  # after that a class is rechecked (kube-scheduler: five minutes)
RECHECKS_MOST = 16  # classes rechecked at a time: tens of milliseconds on 15,000 nodes

_NO_MORE: Any = object()


class Placement:
    """The scheduling cycles of all profiles."""

    def __init__(self, state: State, effects: Effects, nominations: Nominations) -> None:
        self._state = state
        self._effects = effects
        self._nominations = nominations
        self._gang_attempts = GangAttempts(state, effects)
        self._slices = CycleSlices(state.cluster)
        self.goes_on = False  # whether the next step goes on with the cycle of this one; written here only
        self._faults_before = 0  # the cycle began
        self._withheld = WithheldClasses(state.class_queues, state.profiles)
        self._withholds = any(may_withhold(each.order) for each in state.profiles.values())
        self._deferred = DeferredClasses(state.view, state.class_queues, state.deferrals, state.profiles)

    @property
    def next_until(self) -> float:
        """When the first deferred, withheld or held task is to be placed, seconds; inf for never."""
        held = self._state.held.next_until if self._has_data else inf
        return min(self._deferred.next_until, self._withheld.next_until, held)

    @property
    def _has_data(self) -> bool:
        """Whether a task with data waits, or has until now."""
        return bool(self._state.class_queues.with_data or self._state.held.followed)

    @property
    def is_due(self) -> bool:
        """Whether the next step must not wait: a cycle was cut, and not all has been decided by all."""
        if not self._slices.is_cut:
            return False
        active = self._state.class_queues.active.values()
        return (
            self.goes_on
            or self._deferred.has_changed
            or any(each.asked_version != each.version for each in active)
        )

    # -- cycles --------------------------------------------------------------------------------

    def place_pending(self) -> None:
        """Run one cycle of every profile, or the next slice of it.

        The profile whose first task is the eldest begins.
        """
        state = self._state
        if self._withholds:
            self._withheld.begin_cycle(state.view)
        if self._has_data:
            state.held.begin_step(state.view)
        self._begin()
        refused = self._count_joined() if state.class_queues.joined else []
        by_profile: dict[str, list[PendingClass]] = {}
        for pending in self._slices.take(state.class_queues.active):
            by_profile.setdefault(pending.profile, []).append(pending)
        active = list(by_profile.items())
        if len(active) > 1:
            active.sort(key=lambda each: min(pending.eldest() for pending in each[1]))
        for name, classes in active:
            self._run_cycle(state.profiles[name], classes)
        if self._withholds:
            self._withheld.end_step(state.now)
        if self._has_data:
            state.held.end_step(state.view)
            state.say_hot_spots()
        self.goes_on = bool(self._slices)
        if self.goes_on:
            self._deferred.end_step()
        elif state.deferrals.waits or state.deferrals.released:
            self._deferred.end_cycle(has_failed=state.counters.faults > self._faults_before)
        if state.placed.nominated:
            asked = (pending for classes in by_profile.values() for pending in classes)
            refused += [pending for pending in asked if pending.unschedulable_since is not None]
            self._nominations.bind_above_lower(dict.fromkeys(refused))

    def _begin(self) -> None:
        """Begin a cycle, or go on with the one that the last step has cut."""
        state = self._state
        state.view.classes.begin_cycle()
        if self.goes_on:
            self._deferred.resume_cycle(state.view)
            return
        if self._deferred.is_used:
            self._deferred.begin_cycle(state.view)
        else:
            self._deferred.view = state.view
            state.class_queues.activate_fitting()
        self._slices.begin(state.class_queues.active.values())
        self._faults_before = state.counters.faults

    def _count_joined(self) -> list[PendingClass]:
        """The unschedulable classes that tasks have joined: their answer is that of the class.

        The tasks count as attempts, as if each had been tried.
        """
        state, classes = self._state, list[PendingClass]()
        for pending, joined in state.class_queues.take_joined():
            state.count_attempts("unschedulable", pending.profile, joined)
            state.refused(pending.profile, pending.class_key)
            classes.append(pending)
        return classes

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
        cycle = SchedulingCycle(profile, self._state, classes, self._slices.allowance)
        policy = profile.place
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
                gang = cycle.take_gang()
                if gang is None:
                    break
                self._gang_attempts.attempt(profile, cycle, gang)
                answers = None  # the policy is asked about the tasks behind the gang
                continue
            try:
                self._effects.put_in_force(Place, cycle, action)
            except PolicyError as error:
                faults += 1
                self._reject(cycle, policy, action, error)
        if faults == FAULTS_MOST:
            self._policy_raised(cycle, policy, f"erred {faults} times in one scheduling cycle")
        self._slices.count(cycle.removed, cycle.asked)
        if cycle.is_cut:
            self._slices.put_back([pending for pending in classes if pending.has_more])
        if self._slices.is_cut:
            self._slices.end_slice(pending for pending in classes if not pending.has_more)
        if self._state.deferrals.waits or len(self._state.profiles) > 1:
            self._deferred.observe(classes)
        self._state.class_queues.end_cycle(classes)
        if self._withholds:
            self._withheld.end_cycle(profile.scheduler_name, classes, self._state.view)

    def _reject(self, cycle: SchedulingCycle, policy: Place, action: Action, error: PolicyError) -> None:
        """The action is not put in force: each task of it that was offered backs off."""
        self._state.fault(policy, str(error))
        for task in getattr(action, "tasks", (getattr(action, "task", None),)):
            if isinstance(task, Task) and task.uid in cycle.offered:
                cycle.fail(cycle.offered[task.uid].task, f"policy {policy}: {error}")

    def _policy_raised(self, cycle: SchedulingCycle, policy: Place, message: str) -> bool:
        """The task that was offered last and not answered backs off; False if there is none."""
        self._state.fault(policy, message)
        if not cycle.offered:
            return False
        task = cycle.offered[next(reversed(cycle.offered))].task
        cycle.fail(task, f"policy {policy} failed: {message}")
        return True
