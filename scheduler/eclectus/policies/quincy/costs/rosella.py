"""Service times: how long the pod is expected to run on the node, by learned speeds.

All waiting pods together get the nodes on which the sum of their run times is least, so that work which gains
most by fast nodes gets them. A pod that waits costs twice its run time on the fastest node, busy or not, and
more the longer it has waited: it does not take a node more than twice as slow before it has waited for as
long as it would lose there beyond that.
"""

from math import inf

import numpy as np

from eclectus.framework import Floats, Ints, Rows, Task, TaskClass, View
from eclectus.policies.quincy.costs.cost_model import CostModel, whole

PATIENCE = 2  # times the shortest run time: as if the next slot on the fastest nodes came after one more


class ServiceTimes(CostModel):
    """Milliseconds."""

    is_time = True

    def costs(self, view: View, task_class: TaskClass, rows: Rows) -> Ints:
        """The expected run time; the greatest cost where the node counts as dead."""
        return whole(1000.0 / view.speeds(task_class).rate[rows])

    def waiting(self, view: View, task_class: TaskClass, waited: float) -> int:
        """Twice the shortest run time, and the time waited."""
        return _waiting(view.speeds(task_class).rate[task_class.waitable_rows], waited)

    def staying(self, view: View, task: Task, row: int) -> int:
        """The expected run time of all of its work."""
        return int(whole(1000.0 / view.learn.speeds(task.workload).rate[[row]])[0])

    def ended(self, view: View, task: Task, waited: float) -> int:
        """By the fastest node of all."""
        return _waiting(view.learn.speeds(task.workload).rate[view.cluster.present], waited)


def _waiting(rates: Floats, waited: float) -> int:
    fastest = float(rates.max(initial=0.0))
    return int(whole(np.array([1000.0 * (PATIENCE / fastest + waited if fastest else inf)]))[0])
