"""What a cost model answers."""

from abc import ABC, abstractmethod

import numpy as np

from eclectus.framework import COST_MOST, Floats, Ints, Rows, TaskClass, View

WHOLE_MOST = COST_MOST // 2  # of a node or of staying; what priorities add to that is within COST_MOST


def whole(costs: Floats) -> Ints:
    """Costs as whole numbers within bounds; inf is the greatest."""
    bounded = np.nan_to_num(costs, nan=WHOLE_MOST, posinf=WHOLE_MOST, neginf=-WHOLE_MOST)
    found: Ints = np.rint(np.clip(bounded, -WHOLE_MOST, WHOLE_MOST)).astype(np.int64)
    return found


class CostModel(ABC):
    """What it costs to run pods on nodes, and to let them wait."""

    @abstractmethod
    def costs(self, view: View, task_class: TaskClass, rows: Rows) -> Ints:
        """Of the next pod of the class on each of these rows, where it has room."""

    def rise(self, task_class: TaskClass) -> int:
        """What each further pod of the class costs more on the same node."""
        return 0

    def crowding(self, view: View, rows: Rows) -> tuple[Ints, int]:
        """Of the next pod on each of these rows, of whatever class; and what each further one costs more."""
        return np.zeros(len(rows), dtype=np.int64), 0

    def waiting(self, view: View, task_class: TaskClass, waited: float) -> int:
        """Of a pod of the class that stays without a node in this round and has waited for so many seconds.

        By default any node is better than none.
        """
        return WHOLE_MOST
