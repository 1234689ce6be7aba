"""What a second of waiting weighs in re-planning: set by the user, or by load and slots of the class at hand.

The load is the share of the nodes' pace in use (maths/deferring.py), averaged over the time of some five
tasks: so nothing need be known of arrivals, and each class has the load of the nodes it may use. Nodes are
looked at again when a good part of them has changed: a decision costs no more on many than on few.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import View
from eclectus.maths.deferring import pace_in_use, weight_of_waiting

MEASUREMENTS_PER_TURNOVER = 32  # looks at all nodes while all of them change once
MEAN_TIMES = 5.0  # mean times of a task over which the load is averaged: what is so for a moment is no load


@dataclass
class Measurement:
    """One class at the last look."""

    cursor: int  # where the journal stood
    at: float  # seconds
    load: float
    theta: float


class WaitingWeight:
    """theta by class."""

    def __init__(self, fixed: float | None) -> None:
        self._fixed = fixed
        self._measured: dict[TaskClass, Measurement] = {}

    def of(self, view: View, task_class: TaskClass) -> float:
        """As it stands, or stood not long ago."""
        if self._fixed is not None:
            return self._fixed
        seen, place = self._measured.get(task_class), view.cluster.usage.end
        if seen is None:
            if len(self._measured) >= view.classes.most:
                self._measured.clear()
            seen = self._measured[task_class] = self._measure(view, task_class, None)
        elif (place - seen.cursor) * MEASUREMENTS_PER_TURNOVER > len(view.cluster):
            seen = self._measured[task_class] = self._measure(view, task_class, seen)
        return seen.theta

    def _measure(self, view: View, task_class: TaskClass, last: Measurement | None) -> Measurement:
        rows = task_class.waitable_rows
        slots = task_class.service_slots[rows]
        rate = view.speeds(task_class).rate[rows] * task_class.background_free[rows]
        load = pace_in_use(task_class.overflow[rows] + slots - 1.0, slots, rate)
        total, pace = float(slots.sum()), float(slots @ rate)
        if last is not None and pace > 0:
            kept = exp(-(view.now - last.at) * pace / (MEAN_TIMES * total))
            load = kept * last.load + (1.0 - kept) * load
        theta = weight_of_waiting(load, total / max(len(rows), 1))
        return Measurement(view.cluster.usage.end, view.now, load, theta)
