"""Load spreading: the fewer pods a node has, the better. Firmament's model of that name, its Octopus too.

A node's cost rises with every pod that gets it. With one cost for all the slots of a node a whole batch may
land on one (kubernetes-retired/poseidon#2).
"""

import numpy as np

from eclectus.framework import Ints, Rows, TaskClass, View
from eclectus.policies.quincy.costs.cost_model import CostModel, pods_on

STEP = 100  # of a pod, as in Firmament


class LoadSpreading(CostModel):
    """100 for each pod that the node has."""

    def costs(self, view: View, task_class: TaskClass, rows: Rows) -> Ints:
        """None beside those of the node."""
        return np.zeros(len(rows), dtype=np.int64)

    def crowding(self, view: View, rows: Rows) -> tuple[Ints, int]:
        """By the pods on the node."""
        return STEP * pods_on(view, rows), STEP
