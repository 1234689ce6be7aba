"""The effects of answers about refused tasks: room is held for them, and pods are evicted.

Relieve policies answer so, and Orders that reserve nodes.
"""

from __future__ import annotations

from eclectus.engine.effects.checks import validate_row, validate_task
from eclectus.engine.nominations import Nominations
from eclectus.engine.state import State
from eclectus.framework import Evict, Nominate, Refused
from eclectus.model.errors import PolicyError
from eclectus.model.objects import Task
from eclectus.model.outranking import outranks


class Relieving:
    """Two methods for each action: `validate_…`, which changes nothing, and the one that applies it."""

    def __init__(self, state: State, nominations: Nominations) -> None:
        self._state, self._nominations = state, nominations

    def validate_reserve(self, refused: Refused, reserve: Nominate) -> None:
        """The task was refused and is not nominated, and the node is feasible for it."""
        state, task = self._state, _validate_refused(refused, reserve.task)
        row = validate_row(state, task, reserve.row)
        if state.placed.is_nominated(task.uid):
            raise PolicyError(f"{task} is nominated to node {state.placed.node_of(task.uid)} already")
        if not state.view.task_class(task).scalars.feasible[row]:
            raise PolicyError(f"node {state.cluster.names[row]} may never run {task}")

    def reserve(self, refused: Refused, reserve: Nominate) -> None:
        """The task is nominated."""
        del refused
        self._nominations.nominate(reserve.task, int(reserve.row))

    def validate_evict(self, refused: Refused, evict: Evict) -> None:
        """The victim is bound, of a lower priority, on the task's nominated node, and not evicted yet."""
        state = self._state
        victim, task = validate_task(evict.victim), _validate_refused(refused, evict.task)
        node = state.placed.node_of(task.uid)
        if not state.placed.is_nominated(task.uid):
            raise PolicyError(f"{victim} cannot be evicted for {task}, which is not nominated to a node")
        if not state.placed.is_bound(victim.uid) or state.placed.node_of(victim.uid) != node:
            raise PolicyError(f"{victim} is not bound to node {node}, to which {task} is nominated")
        if not outranks(task, victim):
            raise PolicyError(f"{victim} has not a lower priority than {task}")
        if victim.uid in state.evicted:
            raise PolicyError(f"{victim} is evicted already")

    def evict(self, refused: Refused, evict: Evict) -> None:
        """The victim is deleted."""
        del refused
        self._state.evict(evict.victim, evict.task)


def _validate_refused(refused: Refused, task: object) -> Task:
    task = validate_task(task)
    if task not in refused.tasks:
        raise PolicyError(f"{task} is not among the refused tasks that the policy was asked about")
    return task
