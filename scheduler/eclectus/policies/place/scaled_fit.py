"""Fit by one yardstick for all nodes: what is left, in units of the largest machine there is.

Two baselines of Weng and others, "Beware of Fragmentation", USENIX ATC 2023. Best fit takes the node with
the least of cpu and GPUs left once the task is there, each counted by half. Dot product takes the node on
which free amounts, weighed by what the task asks for, are smallest; Grandl and others, "Tetris", SIGCOMM
2014, score so and take the largest, for work that comes and goes and not for a cluster that fills up.
Memory takes no part in either. As in the paper's simulator a score is a whole number from 0 to 100, and
among equals the first node wins. Departure: a share always goes to the fullest GPU with room, also where
that simulator's dot product would score the GPUs of a node one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.objects import DEVICE_MILLI
from eclectus.model.settings import Setting
from eclectus.policies.shared.by_cost import ByCost


@dataclass(eq=False)
class ScaledBestFit(ByCost):
    """The node with the least left."""

    largest_cpu: Annotated[
        float, Setting("cores of the largest node", why="that of the paper's trace", least=1e-3, most=1e6)
    ] = 128.0
    largest_devices: Annotated[
        float, Setting("GPUs of the largest node", why="that of the paper's trace", least=1e-3, most=1e6)
    ] = 8.0

    def cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Less the score."""
        free, asked = self._amounts(task_class, rows)
        score = np.trunc(100.0 * (1.0 - self._fill(free, asked)))
        return np.where(task_class.fits_now[rows], -score, np.inf)

    def _amounts(self, task_class: TaskClass, rows: Rows) -> tuple[Floats, Floats]:
        """What is free on each row, shape [len(rows), 2], and what the task asks for [2]; cpu and GPUs."""
        cluster = task_class.cluster
        demand = cluster.task_vector(task_class.spec.requests)
        free, asked = np.zeros((len(rows), 2)), np.zeros(2)
        scales = {"cpu": 1000.0 * self.largest_cpu, DEVICE_MILLI: 1000.0 * self.largest_devices}
        for at, (name, scale) in enumerate(scales.items()):
            column = cluster.columns.get(name)
            if column is not None:
                allocatable, used, meant, _ = cluster.layers[:, rows, column]
                free[:, at], asked[at] = (allocatable - used - meant) / scale, demand[column] / scale
        return free, asked

    def _fill(self, free: Floats, asked: Floats) -> Floats:
        """0 where the task suits best, at most 1 on a node no larger than the largest."""
        left: Floats = (free - asked).mean(axis=1)
        return left


@dataclass(eq=False)
class DotProduct(ScaledBestFit):
    """The node whose free amounts the task weighs least."""

    def _fill(self, free: Floats, asked: Floats) -> Floats:
        product: Floats = (free * asked).mean(axis=1)
        return product
