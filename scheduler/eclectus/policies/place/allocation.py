"""Spread or pack by what is allocated: kube-scheduler's NodeResourcesFit scores.

Least allocated (the Kubernetes default) takes the node with the largest free share of cpu and memory,
most allocated the smallest. Pods without requests count as 100m and 200 MiB, as there. Departures:
scores are not rounded to integers, so near ties are decided by the finer number and never at random;
soft preferences keep kube-scheduler's weight against the score, 5 (taints 3 and affinity 2) to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.policies.shared.by_cost import ByCost

SOFT_WEIGHT = 5.0


@dataclass(eq=False)
class LeastAllocated(ByCost):
    """The emptiest node with room."""

    sign = 1.0

    def cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Falls with what is free, or rises."""
        cluster = task_class.cluster
        columns = [cluster.columns["cpu"], cluster.columns["memory"]]
        allocatable = cluster.allocatable.take(rows, axis=0).take(columns, axis=1)
        held = cluster.scored[rows] + task_class.spec.score_requests
        share = np.where(allocatable > 0, np.minimum(held / allocatable, 1.0), 1.0).mean(axis=1)
        cost = 1.0 + self.sign * share + SOFT_WEIGHT * (1.0 - task_class.preference_score[rows])
        return np.where(task_class.fits_now[rows], cost, np.inf)


@dataclass(eq=False)
class MostAllocated(LeastAllocated):
    """The fullest node with room."""

    sign = -1.0
