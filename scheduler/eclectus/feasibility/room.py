"""The room that nodes have for tasks of one class: all formulas of NodeResourcesFit, in one place.

A task of the class demands `demand[r]` of every resource r that its pod requests, and one of `pods`. Of
node i:

    overflow[i]       = max over r of (used[i,r] + tentative[i,r] + demand[r] - allocatable[i,r]) / demand[r]
    service_slots[i]  = floor of min over r of (allocatable[i,r] - long_running[i,r]) / demand[r], at least 0
    empty_capacity[i] = floor of min over r of allocatable[i,r] / demand[r]

A task fits if and only if overflow <= 0; otherwise overflow is the number of tasks of this class that must
end on the node before one more fits. With k equal slots and q tasks it is q + 1 - k.

Each formula has one form for many rows (numpy) and, where single rows are evaluated often, one for a single
row (`..._at`, Python floats, about twenty times cheaper than an array of one). Both do the same floating
point operations in the same order, so their results are equal to the last bit. The array forms go resource by
resource: reducing a table [rows, resources] along its short side takes numpy three times as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import floor, inf

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask
from eclectus.model.objects import Amounts

Floats = NDArray[np.float64]


class Room:
    """The room for tasks with these requests.

    Valid until the cluster replaces its arrays, which the change log `shape` reports to every reader as
    "start over"; then make a new one.
    """

    __slots__ = ("_cluster", "_demands", "_resources")

    def __init__(self, cluster: Cluster, requests: Amounts) -> None:
        parts = cluster.parts(requests)  # may add columns and so replace the arrays: before they are read
        self._cluster = cluster
        self._demands = parts  # column and amount of each demanded resource
        allocatable, used, tentative, long_running = cluster.layer_scalars
        self._resources = tuple(
            (allocatable[column], used[column], tentative[column], long_running[column], demand)
            for column, demand in parts
        )

    # -- overflow ------------------------------------------------------------------------------

    def overflow(self, rows: Rows) -> Floats:
        """The overflow of each of the rows, shape [len(rows)]."""
        used, tentative, allocatable = self._cluster.used, self._cluster.tentative, self._cluster.allocatable
        overflow: Floats = reduce(
            np.maximum,
            (
                (used[rows, column] + tentative[rows, column] + demand - allocatable[rows, column]) / demand
                for column, demand in self._demands
            ),
        )
        return overflow

    def overflow_at(self, row: int) -> float:
        """The overflow of one row."""
        overflow = -inf
        for allocatable, used, tentative, _, demand in self._resources:
            of_resource = (used[row] + tentative[row] + demand - allocatable[row]) / demand
            if of_resource > overflow:
                overflow = of_resource
        return overflow

    def shortages(self, rows: Rows) -> Iterator[tuple[str, Mask]]:
        """Each resource that a task demands, and which of the rows have too little of it left."""
        cluster, names = self._cluster, tuple(self._cluster.columns)
        for column, demand in self._demands:
            taken = cluster.used[rows, column] + cluster.tentative[rows, column]
            yield names[column], taken + demand > cluster.allocatable[rows, column]

    def fits_beside_held(self, row: int) -> bool:
        """Whether one more task fits beside the pods on the node; tentative placements do not count."""
        for allocatable, used, _, _, demand in self._resources:
            if used[row] + demand > allocatable[row]:
                return False
        return True

    # -- slots ---------------------------------------------------------------------------------

    def service_slots(self, rows: Rows) -> Floats:
        """Tasks that fit beside the services of each of the rows, shape [len(rows)]."""
        allocatable, long_running = self._cluster.allocatable, self._cluster.long_running
        slots: Floats = reduce(
            np.minimum,
            (
                (allocatable[rows, column] - long_running[rows, column]) / demand
                for column, demand in self._demands
            ),
        )
        return np.maximum(np.floor(slots), 0.0)

    def service_slots_at(self, row: int) -> int:
        """Tasks that fit beside the services of one row."""
        least = min(
            (allocatable[row] - long_running[row]) / demand
            for allocatable, _, _, long_running, demand in self._resources
        )
        return max(floor(least), 0)

    def empty_capacity(self, rows: Rows) -> Floats:
        """Tasks that fit on each of the rows when it is empty, shape [len(rows)]."""
        allocatable = self._cluster.allocatable
        least: Floats = reduce(
            np.minimum, (allocatable[rows, column] / demand for column, demand in self._demands)
        )
        return np.floor(least)
