"""Relief: Relieve policies are asked about refused classes; each action is in force before the next one.

A policy is a plug-in: what it asks for in error, or raises, becomes a Fault with its name, and the class is
asked about again later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eclectus.engine.nominations import Nominations
from eclectus.engine.schedules.relief import RefusedKey
from eclectus.engine.state import State
from eclectus.engine.validation import validate_row, validate_task
from eclectus.framework import Evict, Refused, ReliefAction, Relieve, Reserve
from eclectus.model.errors import PolicyError
from eclectus.model.objects import Task

TASKS_MOST = 64  # refused tasks of a class that are shown in one step, so that the step stays short
CLASSES_MOST = 16  # classes in one step, likewise


class Relief:
    """`_effects`: type of action -> what checks it, which changes nothing, and what puts it in force."""

    def __init__(self, state: State, nominations: Nominations) -> None:
        self._state, self._nominations = state, nominations
        self._effects: Mapping[type, tuple[Callable[[Any], None], Callable[[Any], None]]] = {
            Reserve: (self._validate_reserve, self._reserve),
            Evict: (self._validate_evict, self._evict),
        }

    def relieve(self) -> None:
        """Ask about every class that is due."""
        state, schedule = self._state, self._state.relief
        due = schedule.take_due(state.now)
        for key in due[CLASSES_MOST:]:
            schedule.add(key)
        for key in due[:CLASSES_MOST]:
            self._relieve_class(key)

    def _relieve_class(self, key: RefusedKey) -> None:
        state, (profile, class_key) = self._state, key
        task_class = state.view.classes.current(*class_key)
        waiting = [] if task_class.fits_now_count else self._waiting(key)
        if not waiting:
            state.relief.discard(key)
            return
        shown = waiting[:TASKS_MOST]
        self._ask(state.profiles[profile].relieve, Refused(task_class, shown))
        if any(not state.placed.is_nominated(task.uid) for task in shown):
            state.relief.ask_again(key, state.now)
        elif len(shown) < len(waiting):
            state.relief.add(key)
        else:
            state.relief.helped(key)

    def _waiting(self, key: RefusedKey) -> list[Task]:
        """The tasks for which pods may be evicted and no room is held yet, highest priority first."""
        state = self._state
        tasks = (*state.class_queues.of_class(*key), *state.node_queues.of_class(*key))
        waiting = [task for task in tasks if task.preempts and not state.placed.is_nominated(task.uid)]
        return sorted(waiting, key=lambda task: -task.priority)

    def _ask(self, policy: Relieve, refused: Refused) -> None:
        """Put in force what the policy answers, up to its first error."""
        self._state.counters.preemption_attempts += 1
        try:
            for action in policy.relieve(self._state.view, refused):
                self._put_in_force(action)
        except Exception as error:  # a plug-in's defect must not stop the others
            message = str(error) if isinstance(error, PolicyError) else f"{type(error).__name__}: {error}"
            self._state.fault(policy, message)

    def _put_in_force(self, action: ReliefAction) -> None:
        if type(action) not in self._effects:
            raise PolicyError(f"{action!r} is not an action a Relieve policy may answer with")
        validate, apply = self._effects[type(action)]
        validate(action)
        apply(action)

    # -- effects -------------------------------------------------------------------------------

    def _validate_reserve(self, reserve: Reserve) -> None:
        state, task = self._state, validate_task(reserve.task)
        row = validate_row(state, task, reserve.row)
        if task.uid not in state.class_queues and task.uid not in state.node_queues:
            raise PolicyError(f"{task} does not wait for a node")
        if state.placed.is_nominated(task.uid):
            raise PolicyError(f"{task} is nominated to node {state.placed.node_of(task.uid)} already")
        if not state.view.task_class(task).scalars.feasible[row]:
            raise PolicyError(f"node {state.cluster.names[row]} may never run {task}")

    def _reserve(self, reserve: Reserve) -> None:
        self._nominations.nominate(reserve.task, int(reserve.row))

    def _validate_evict(self, evict: Evict) -> None:
        state = self._state
        victim, task = validate_task(evict.victim), validate_task(evict.task)
        node = state.placed.node_of(task.uid)
        if not state.placed.is_nominated(task.uid):
            raise PolicyError(f"{victim} cannot be evicted for {task}, which is not nominated to a node")
        if not state.placed.is_bound(victim.uid) or state.placed.node_of(victim.uid) != node:
            raise PolicyError(f"{victim} is not bound to node {node}, to which {task} is nominated")
        if victim.priority >= task.priority:
            raise PolicyError(f"{victim} has not a lower priority than {task}")
        if victim.uid in state.evicted:
            raise PolicyError(f"{victim} is evicted already")

    def _evict(self, evict: Evict) -> None:
        self._state.evict(evict.victim, evict.task)
