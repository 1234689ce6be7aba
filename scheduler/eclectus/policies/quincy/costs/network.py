"""Network-aware: pods that request bandwidth go where most of it is left. Firmament's model `net-bw`.

The cost of the k-th pod is k times its request, less what is available: the nodes with the most bandwidth
left come first, and each pod that a node gets makes it dearer. Costs are in thousandths of the largest
request of the class, so that they are within bounds in any unit.
"""

import numpy as np

from eclectus.framework import Ints, Rows, TaskClass, View
from eclectus.policies.quincy.costs.cost_model import CostModel, whole

SCALE = 1000.0


class Network(CostModel):
    """By the bandwidth that is left: an extended resource, in whatever unit."""

    def __init__(self, resource: str) -> None:
        self._resource = resource

    def costs(self, view: View, task_class: TaskClass, rows: Rows) -> Ints:
        """How much less than the request is left, in thousandths of it; 0 for pods that request none."""
        request, column = self._request_of(task_class), view.cluster.columns.get(self._resource)
        if not request or column is None:
            return np.zeros(len(rows), dtype=np.int64)
        left = view.cluster.allocatable[rows, column] - view.cluster.used[rows, column]
        return whole(SCALE * (request - left) / request)

    def rise(self, task_class: TaskClass) -> int:
        """One request."""
        return int(SCALE) if self._request_of(task_class) else 0

    def _request_of(self, task_class: TaskClass) -> int:
        return dict(task_class.spec.requests).get(self._resource, 0)
