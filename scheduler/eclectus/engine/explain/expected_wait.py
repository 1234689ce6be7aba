"""How long a pod without room is expected to wait: what is ahead of it, worked off by the nodes it may use.

The backlog rule of maths/backlog_wait.py for the pod's set of nodes. Work ahead that may use other nodes
too counts by the share of the pod's slots that it may use: its tasks are spread over all of its nodes, and
keep each of them busy for the same time.
"""

from __future__ import annotations

import numpy as np

from eclectus.engine.state import State
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.maths.backlog_wait import backlog_wait_seconds
from eclectus.model.reservation import ClassKey

MAX_QUEUES = 16  # classes that are considered to be ahead: those with the most pods


class StepEstimates:
    """The estimates of one step. The first of a class costs O(nodes x MAX_QUEUES), the others O(1).

    They are for pods in the order of arrival: that priorities and Order policies let others pass is not
    considered.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._next: dict[ClassKey, tuple[float, float]] = {}  # seconds of the next pod, and more for each
        self._slots_of: dict[ClassKey, Floats] = {}

    def seconds(self, task_class: TaskClass) -> float | None:
        """How long one more pod of the class waits from now on; None while its run times are not known."""
        key = (task_class.spec, task_class.workload)
        if key not in self._next:
            found = self._first_of(key)
            if found is None:
                return None
            self._next[key] = found
        seconds, more = self._next[key]
        self._next[key] = seconds + more, more
        return seconds

    def _first_of(self, key: ClassKey) -> tuple[float, float] | None:
        state = self._state
        service = state.service_times.of(key[1])
        if service is None:
            return None  # before any array is computed: a new kind of work may come in many classes
        slots = self._slots(key)
        servers = int(slots.sum())
        if not servers:
            return None
        seconds_ahead = 0.0
        for other, pods in state.expected_waits.longest_queues(MAX_QUEUES):
            of_other = state.service_times.of(other[1])
            if of_other is None:
                continue
            theirs = self._slots(other)
            if theirs.any():
                share = float(slots[theirs > 0].sum()) / servers
                seconds_ahead += share * pods * of_other.mean_seconds / float(theirs.sum())
        seconds = backlog_wait_seconds(
            servers,
            seconds_ahead * servers,
            service_seconds=service.mean_seconds,
            service_scv=service.variation,
        )
        return seconds, service.mean_seconds / servers

    def _slots(self, key: ClassKey) -> Floats:
        """Slots of each row for the class, beside services; 0 where it may not run. Shape [capacity]."""
        found = self._slots_of.get(key)
        if found is None:
            task_class = self._state.view.classes.current(*key)
            found = self._slots_of[key] = np.where(task_class.feasible, task_class.service_slots, 0.0)
        return found
