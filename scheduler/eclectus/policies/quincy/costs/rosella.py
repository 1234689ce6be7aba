"""Service times: how long the pod is expected to run on the node, by learned speeds.

All waiting pods together get the nodes on which the sum of their run times is least, so that work which gains
most by fast nodes gets them. A pod that waits costs twice its run time on the fastest node, busy or not, and
more the longer it has waited: it does not take a node more than twice as slow before it has waited for as
long as it would lose there beyond that.
"""

from math import inf

import numpy as np

from eclectus.framework import Ints, Rows, TaskClass, View
from eclectus.policies.quincy.costs.cost_model import CostModel, whole

PATIENCE = 2  # times the shortest run time: as if the next slot on the fastest nodes came after one more


class ServiceTimes(CostModel):
    """Milliseconds."""

    def costs(self, view: View, task_class: TaskClass, rows: Rows) -> Ints:
        """The expected run time; the greatest cost where the node counts as dead."""
        return whole(1000.0 / view.speeds(task_class).rate[rows])

    def waiting(self, view: View, task_class: TaskClass, waited: float) -> int:
        """Twice the shortest run time, and the time waited."""
        fastest = float(view.speeds(task_class).rate[task_class.waitable_rows].max(initial=0.0))
        return int(whole(np.array([1000.0 * (PATIENCE / fastest + waited if fastest else inf)]))[0])
