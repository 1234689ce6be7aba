"""Best fit and worst fit: the tightest node with room, or the loosest.

Johnson, "Near-optimal bin packing algorithms", 1973. How tight a node is has one natural unit here: how
many more tasks of the same class would fit, by the resource that runs out first. Best fit leaves large
holes whole for large tasks, worst fit leaves everybody elbow room. Departure from the textbook: several
resources, of which those that the task does not ask for play no part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.policies.shared.by_cost import ByCost


@dataclass(eq=False)
class BestFit(ByCost):
    """The node with room for the fewest more of this class."""

    sign = -1.0

    def cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Tasks more that fit."""
        return np.where(task_class.fits_now[rows], self.sign * task_class.overflow[rows], np.inf)


@dataclass(eq=False)
class WorstFit(BestFit):
    """The node with room for the most more of this class."""

    sign = 1.0
