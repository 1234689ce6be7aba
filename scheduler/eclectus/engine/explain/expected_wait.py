"""How long a pod without room is expected to wait: what is ahead of it, worked off by the nodes it may use.

The backlog rule of maths/backlog_wait.py. The queues ahead, one for each class of pods, fill the nodes that
they may use, the queue with the eldest pod first. So a queue for scarce nodes keeps these busy and no others,
and a pod that may run elsewhere waits for what is ahead on the nodes that are free first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.engine.state import State
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.maths.backlog_wait import Filling, residual_seconds
from eclectus.maths.estimators.run_times import ServiceTime
from eclectus.model.reservation import ClassKey

MAX_QUEUES = 16  # classes that are considered to be ahead: those with the most pods


@dataclass
class _Queue:
    """What a class adds to the work on its nodes in this step."""

    rows: Rows
    filling: Filling  # of these rows, when the class was asked about first
    service: ServiceTime
    work: float = 0.0  # seconds, of its pods so far


class StepEstimates:
    """The estimates of one step. The first one and the first of each class cost O(nodes), the others less.

    They are for pods in the order of arrival: that priorities and Order policies let others pass is not
    considered.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._queues: dict[ClassKey, _Queue | None] = {}
        self._busy: Floats | None = None  # by row, seconds for which it works off what is ahead

    def seconds(self, task_class: TaskClass) -> float | None:
        """How long one more pod of the class waits from now on; None while its run times are not known."""
        key = (task_class.spec, task_class.workload)
        if self._state.service_times.of(key[1]) is None:
            return None  # before any array is computed: a new kind of work may come in many classes
        if self._busy is None:
            self._busy = self._of_those_ahead()
        if key not in self._queues:
            self._queues[key] = self._queue(key, self._busy)
        queue = self._queues[key]
        if queue is None:
            return None
        residual = residual_seconds(queue.service.mean_seconds, queue.service.variation)
        seconds = queue.filling.seconds(queue.work + residual)
        _fill(self._busy, queue, queue.service.mean_seconds)
        return seconds

    def _of_those_ahead(self) -> Floats:
        """By row, for how long what waits already keeps it busy."""
        busy = np.zeros(self._state.view.cluster.capacity)
        for key, pods in self._state.expected_waits.longest_queues(MAX_QUEUES):
            queue = self._queue(key, busy)
            if queue is not None:
                _fill(busy, queue, pods * queue.service.mean_seconds)
        return busy

    def _queue(self, key: ClassKey, busy: Floats) -> _Queue | None:
        """The class behind all that keeps nodes busy; None without run times, or without a node."""
        task_class, service = self._state.view.classes.current(*key), self._state.service_times.of(key[1])
        rows = task_class.waitable_rows
        if service is None or not len(rows):
            return None
        return _Queue(rows, Filling(busy[rows], task_class.service_slots[rows]), service)


def _fill(busy: Floats, queue: _Queue, work: float) -> None:
    """Add work of the queue to its nodes that are free first."""
    queue.work += work
    busy[queue.rows] = np.maximum(busy[queue.rows], queue.filling.seconds(queue.work))
