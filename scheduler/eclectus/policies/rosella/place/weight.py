"""theta, the weight of a second of waiting: set by the user, or computed from load and faster nodes.

The rule is that of maths/deferring.py. The load is that of the class, from arrivals (demand.py): the share of
the nodes' capacity in use would lag where work comes faster than before, and is too low where tasks wait
beside room. What nodes faster than another do is computed once for all nodes of a class, and again when
speeds or prices have changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from eclectus.framework import Floats, TaskClass, View
from eclectus.maths.deferring import step_of, weight_of_waiting
from eclectus.policies.rosella.place.compare import DEAD_RATE
from eclectus.policies.rosella.place.demand import ClassDemand, Demand


@dataclass
class FasterNodes:
    """Of each row: the pace of all nodes of the class over that of the faster ones; inf of the fastest."""

    key: Hashable  # what it depends on
    ratio: Floats


class WaitingWeight:
    """theta by class and the node with room that a task would run on instead of waiting."""

    def __init__(self, fixed: float | None, demand: Demand) -> None:
        self._fixed, self._demand = fixed, demand

    def of(self, view: View, task_class: TaskClass, row: int) -> float:
        """theta as set, or of this node with room."""
        if self._fixed is not None:
            return self._fixed
        demand = self._demand.of(task_class)
        if demand.load <= 0.0:
            return weight_of_waiting(0.0)
        return weight_of_waiting(demand.load * self._faster(view, task_class, demand).ratio.item(row))

    def _faster(self, view: View, task_class: TaskClass, demand: ClassDemand) -> FasterNodes:
        cluster = view.cluster
        key = (view.speeds(task_class).epoch, cluster.shape.head, cluster.service_changes, demand.version)
        found: FasterNodes | None = task_class.derived.get(self)
        if found is None or found.key != key:
            ratio = _total_over_faster(view, task_class, demand.factor)
            found = task_class.derived[self] = FasterNodes(key, ratio)
        return found


def _total_over_faster(view: View, task_class: TaskClass, factor: Floats | None) -> Floats:
    """Shape [capacity]. Nodes that have a price for the class count as slower, and with no pace."""
    rows = task_class.waitable_rows
    rate = np.clip(view.speeds(task_class).rate, DEAD_RATE, 1.0 / DEAD_RATE)
    pace = task_class.service_slots[rows] * rate[rows] * task_class.background_free[rows]
    if factor is not None:
        pace[factor[rows] > 1.0] = 0.0
        rate = rate / factor
    step = step_of(rate)
    behind = (step.max(initial=0.0) - step).astype(np.intp)  # steps behind the fastest: some hundreds at most
    up_to = np.concatenate([[0.0], np.cumsum(np.bincount(behind[rows], pace, minlength=1))])
    faster = up_to[np.minimum(behind, len(up_to) - 1)]
    ratio: Floats = np.divide(up_to[-1], faster, out=np.full(len(rate), np.inf), where=faster > 0.0)
    return ratio
