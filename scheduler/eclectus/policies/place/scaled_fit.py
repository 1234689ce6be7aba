"""Best fit and dot product, with all amounts measured in units of the largest node.

Two baselines of Weng et al., "Beware of Fragmentation", USENIX ATC 2023. Best fit takes the node with the
least cpu and GPUs left after placing the task, each weighted by one half. Dot product takes the node with
the smallest dot product of free amounts and requested amounts. (Grandl et al., "Tetris", SIGCOMM 2014, use
the same product and take the largest: for tasks that end, not for filling a cluster.) Memory is not
considered. As in the paper's simulator, a score is an integer from 0 to 100, and the first node wins a tie.

Departure: a share of a GPU always goes to the fullest GPU with room. The simulator's dot product scores each
GPU of a node by itself.
"""

from dataclasses import dataclass

import numpy as np

from eclectus.cluster.devices import DEVICE_MILLI
from eclectus.framework import Floats, Rows, TaskClass, setting
from eclectus.policies.shared import ByCost


@dataclass(eq=False)
class ScaledBestFit(ByCost):
    """The node with the least cpu and GPUs left, in units of the largest node."""

    largest_cpu: float = setting(
        128.0, "cores of the largest node", why="as in the paper's trace", least=1e-3, most=1e6
    )
    largest_devices: float = setting(
        8.0, "GPUs of the largest node", why="as in the paper's trace", least=1e-3, most=1e6
    )

    def cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """The negative score; inf where the task does not fit."""
        free, asked = self._amounts(task_class, rows)
        score = np.trunc(100.0 * (1.0 - self._fill(free, asked)))
        return np.where(task_class.fits_now[rows], -score, np.inf)

    def _amounts(self, task_class: TaskClass, rows: Rows) -> tuple[Floats, Floats]:
        """Free cpu and GPUs of each row, shape [len(rows), 2], and those requested, shape [2]."""
        cluster = task_class.cluster
        demand = cluster.task_vector(task_class.spec.requests)
        free, asked = np.zeros((len(rows), 2)), np.zeros(2)
        scales = {"cpu": 1000.0 * self.largest_cpu, DEVICE_MILLI: 1000.0 * self.largest_devices}
        for at, (name, scale) in enumerate(scales.items()):
            column = cluster.columns.get(name)
            if column is not None:
                allocatable, used, tentative, _ = cluster.layers[:, rows, column]
                free[:, at], asked[at] = (allocatable - used - tentative) / scale, demand[column] / scale
        return free, asked

    def _fill(self, free: Floats, asked: Floats) -> Floats:
        """0 on the best node, at most 1 on nodes that are not larger than the largest."""
        left: Floats = (free - asked).mean(axis=1)
        return left


@dataclass(eq=False)
class DotProduct(ScaledBestFit):
    """The node with the smallest dot product of free and requested amounts."""

    def _fill(self, free: Floats, asked: Floats) -> Floats:
        product: Floats = (free * asked).mean(axis=1)
        return product
