"""Best fit and worst fit: the node with the least room that suffices, or the one with the most.

Johnson, "Near-optimal bin packing algorithms", 1973. Room is measured by how many more tasks of the same
class would fit, which depends on the resource that runs out first. Best fit keeps large free blocks for
large tasks; worst fit spreads tasks. Departure: the textbook has one resource. Here resources that the task
does not request are ignored.
"""

from dataclasses import dataclass

import numpy as np

from eclectus.framework import Floats, Rows, TaskClass
from eclectus.policies.shared import ByCost


@dataclass(eq=False)
class BestFit(ByCost):
    """The node with room for the fewest more tasks of this class."""

    sign = -1.0

    def cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Rises with the number of tasks that fit (WorstFit: falls); inf where the task does not fit."""
        return np.where(task_class.fits_now[rows], self.sign * task_class.overflow[rows], np.inf)


@dataclass(eq=False)
class WorstFit(BestFit):
    """The node with room for the most more tasks of this class."""

    sign = 1.0
