"""theta, the weight of a second of waiting in re-planning: set by the user, or computed from load and slots.

The load is the share of the nodes' service capacity in use (maths/deferring.py), averaged over about five
mean task times. So arrivals need not be measured, and each class has the load of the nodes that it may use.
All nodes are read again only after a fixed share of them has changed, so a decision costs no more on a
large cluster; and only when the class is asked about, which it is not while all its tasks wait and nothing
happens.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import View
from eclectus.maths.deferring import pace_in_use, weight_of_waiting
from eclectus.maths.products import sum_of_products

MEASUREMENTS_PER_TURNOVER = 32  # measurements while as many changes happen as there are nodes
MEAN_TIMES = 5.0  # mean task times over which the load is averaged, so that short peaks do not count


@dataclass
class Measurement:
    """The load of one class when it was last measured."""

    cursor: int  # position in the cluster's change log
    at: float  # seconds
    load: float
    theta: float


class WaitingWeight:
    """theta for each class of tasks."""

    def __init__(self, fixed: float | None) -> None:
        self._fixed = fixed

    def of(self, view: View, task_class: TaskClass) -> float:
        """theta as set, or as of the last measurement; measures again if enough has changed."""
        if self._fixed is not None:
            return self._fixed
        last: Measurement | None = task_class.derived.get(self)
        cursor = view.cluster.usage.head
        if last is None:
            last = task_class.derived[self] = self._measure(view, task_class, None)
        elif (cursor - last.cursor) * MEASUREMENTS_PER_TURNOVER > len(view.cluster):
            last = task_class.derived[self] = self._measure(view, task_class, last)
        return last.theta

    def _measure(self, view: View, task_class: TaskClass, last: Measurement | None) -> Measurement:
        rows = task_class.waitable_rows
        slots = task_class.service_slots[rows]
        rate = view.speeds(task_class).rate[rows] * task_class.background_free[rows]
        load = pace_in_use(task_class.overflow[rows] + slots - 1.0, slots, rate)
        total, pace = float(slots.sum()), float(sum_of_products(slots, rate))
        if last is not None and pace > 0:
            kept = exp(-(view.now - last.at) * pace / (MEAN_TIMES * total))
            load = kept * last.load + (1.0 - kept) * load
        theta = weight_of_waiting(load, total / max(len(rows), 1))
        return Measurement(view.cluster.usage.head, view.now, load, theta)
