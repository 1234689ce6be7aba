"""What is done for refused tasks: Relieve policies are asked to make room, and Orders to keep nodes free.

A policy is a plug-in: what it asks for in error, or raises, becomes a Fault with its name, and the class is
asked about again later.

A node that is kept free is a nomination without victims (nominations.py): room counts as held for the task,
what ends on the node adds to it, and the task is bound as soon as it fits. Whether it still holds, the
Order is asked by `keeps_node`. No node is kept free for a task for which pods of lower priority may be
evicted: Relieve policies make room for it.
"""

from __future__ import annotations

from math import inf
from typing import cast

from eclectus.engine.agenda import RefusedKey
from eclectus.engine.effects import Effects
from eclectus.engine.state import State
from eclectus.framework import JobPlanner, Order, Refused, Relieve
from eclectus.model.errors import PolicyError
from eclectus.model.objects import Task, may_outrank

TASKS_MOST = 64  # refused tasks of a class that are shown in one step, so that the step stays short
CLASSES_MOST = 16  # classes in one step for which there may be victims, likewise


class Relief:
    """Asks about the classes that are due."""

    def __init__(self, state: State, effects: Effects) -> None:
        self._state, self._effects = state, effects

    def relieve(self) -> None:
        """Ask about the classes that are due: so many, and all for which nobody could be evicted."""
        state, asked = self._state, 0
        for key in state.relief.take_due(state.now):
            if self._has_nobody_to_evict(key):
                state.relief.ask_again(key, state.now)
            elif asked == CLASSES_MOST:
                state.relief.add(key)
            else:
                asked += 1
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

    def _has_nobody_to_evict(self, key: RefusedKey) -> bool:
        """Whether no pod has a lower priority than any task of the class; of a class queue O(1)."""
        state = self._state
        in_queues = (task.priority for task in state.node_queues.of_class(*key))
        highest = max(state.class_queues.highest_priority(*key), max(in_queues, default=-inf))
        return highest > -inf and not may_outrank(highest, state.placed.lowest_priority)

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
                self._effects.put_in_force(Relieve, refused, action)
        except Exception as error:  # a plug-in's defect must not stop the others
            message = str(error) if isinstance(error, PolicyError) else f"{type(error).__name__}: {error}"
            self._state.fault(policy, message)


class ReservedNodes:
    """Asks about the classes that are due."""

    def __init__(self, state: State, effects: Effects) -> None:
        self._state, self._effects = state, effects

    def reserve(self) -> None:
        """Ask about the classes that are due; those that are too many for one step stay due."""
        due = self._state.reserving.take_due(self._state.now)
        for key in due[CLASSES_MOST:]:
            self._state.reserving.add(key)
        for key in due[:CLASSES_MOST]:
            self._reserve(key)

    def _reserve(self, key: RefusedKey) -> None:
        state = self._state
        order = cast(JobPlanner, state.profiles[key[0]].order)  # as its traits say
        task_class = state.view.classes.current(*key[1])
        waiting = [] if task_class.fits_now_count else self._waiting(key)
        if not waiting:
            state.reserving.discard(key)
            return
        may_reserve = [task for task in waiting if not state.may_evict_for(task)]
        try:
            refused = Refused(task_class, _first_of_each_group(order, may_reserve))
            for action in order.reserve_nodes(state.view, refused):
                self._effects.put_in_force(Order, refused, action)
        except Exception as error:  # a plug-in's defect must not stop the others
            message = str(error) if isinstance(error, PolicyError) else f"{type(error).__name__}: {error}"
            state.fault(order, message)
        state.reserving.ask_again(key, state.now)

    def _waiting(self, key: RefusedKey) -> list[Task]:
        """The tasks for which no room is held, highest priority first, then each class queue in its order."""
        placed = self._state.placed
        tasks = (
            task for task in self._state.class_queues.of_class(*key) if not placed.is_nominated(task.uid)
        )
        return sorted(tasks, key=lambda task: -task.priority)


def _first_of_each_group(order: Order, tasks: list[Task]) -> list[Task]:
    first: dict[str, Task] = {}
    for task in tasks:
        first.setdefault(order.group(task), task)
    return list(first.values())
