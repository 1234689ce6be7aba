"""How long tasks are expected to run: their estimates, over the mean pace of the nodes that may run them.

An estimate is the run time at mean speed: with learned speeds it is work, and not seconds. Where a task will
run is not known when its job is planned, and a share is a part of all nodes alike. So the pace of a stage is
the mean rate of the nodes that may run it, what background load leaves of each, over the mean rate of all.
Rates themselves would not do: they are tasks a second, so they have the length of the tasks in them.
"""

from collections.abc import Hashable
from math import inf

import numpy as np
from numpy.typing import NDArray

from eclectus.framework import TaskClass, View
from eclectus.model.job import JobStage

PACE_SECONDS = 60.0  # for which a mean pace is good


class Paces:
    """The mean pace of each class of tasks, remembered for a while; 1 is that of a node of mean speed."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[float, float]] = {}  # by class: until when, seconds, and pace

    def expected_seconds(self, view: View, stage: JobStage) -> float | None:
        """For how long a task of this stage is expected to hold its room; None if its estimate is unknown."""
        if stage.seconds is None:
            return None
        key = (stage.spec, stage.workload)
        until, pace = self._known.get(key, (-inf, 1.0))
        if until <= view.now:
            task_class, pace = view.classes.current(*key), 1.0
            if task_class.feasible_count:  # a learner that has seen no node has no rates
                pace = float(node_paces(view, task_class)[task_class.feasible].mean())
            self._known[key] = (view.now + PACE_SECONDS, pace)
        run_seconds = stage.seconds / pace if pace > 0.0 else stage.seconds
        return run_seconds + view.learn.turnaround(stage.workload)


def node_paces(view: View, task_class: TaskClass) -> NDArray[np.float64]:
    """The pace of every node for a class that is feasible somewhere; shape [capacity]."""
    rate = view.speeds(task_class).rate
    of_all = float(rate[view.cluster.present].mean())
    return rate * task_class.background_free / of_all if of_all > 0.0 else np.ones_like(rate)
