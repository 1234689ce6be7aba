"""The room that nodes have for tasks of one class: all formulas of NodeResourcesFit, in one place.

A task of the class demands `demand[r]` of every resource r that its pod requests, and one of `pods`. Of
node i:

    overflow[i]       = max over r of (used[i,r] + tentative[i,r] + demand[r] - allocatable[i,r]) / demand[r]
    service_slots[i]  = floor of min over r of (allocatable[i,r] - long_running[i,r]) / demand[r], at least 0
    empty_capacity[i] = floor of min over r of allocatable[i,r] / demand[r]

A task fits if and only if overflow <= 0; otherwise overflow is the number of tasks of this class that must
end on the node before one more fits. With k equal slots and q tasks it is q + 1 - k. Resources that no node
offers have no columns, however many a pod requests: all together count as one, of which every node has 0.

Each formula has one form for many rows (numpy) and, where single rows are evaluated often, one for a single
row (`..._at`, Python floats, about twenty times cheaper than an array of one). Both do the same floating
point operations in the same order, so their results are equal to the last bit. The array forms go resource by
resource: reducing a table [rows, resources] along its short side takes numpy three times as long. They take
each column before its rows, which is four times as fast as both at once; for all rows a slice is six times as
fast again as an array of their indices. They change one array in place, because on 15,000 nodes each new one
takes longer than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from math import floor, inf

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only, scalars
from eclectus.feasibility.rules.rule import Mask
from eclectus.model.objects import Amounts

Floats = NDArray[np.float64]
Column = tuple[Floats, Floats, Floats, Floats, float]
"""Of a resource what nodes have, what is used, tentative and long-running of it, by row; and the demand."""


class Room:
    """The room for tasks with these requests.

    Valid until the cluster replaces its arrays, which the change log `shape` reports to every reader as
    "start over"; then make a new one.
    """

    __slots__ = ("_cluster", "_columns", "_names", "_not_offered", "_resources")

    def __init__(self, cluster: Cluster, requests: Amounts) -> None:
        parts, names = cluster.parts(requests), tuple(cluster.columns)
        self._cluster = cluster
        self._not_offered = [name for name, _ in cluster.not_offered(requests)]
        self._names = [names[column] for column, _ in parts]  # of the resources that nodes offer
        self._columns: list[Column] = [(*cluster.layers[:, :, column], demand) for column, demand in parts]
        if self._not_offered:
            nothing = read_only(np.zeros(cluster.capacity))
            self._columns.append((nothing, nothing, nothing, nothing, 1.0))
        self._resources = [  # the same, one number at a time
            (scalars(allocatable), scalars(used), scalars(tentative), scalars(long_running), demand)
            for allocatable, used, tentative, long_running, demand in self._columns
        ]

    # -- overflow ------------------------------------------------------------------------------

    def overflow(self, rows: AnyRows) -> Floats:
        """The overflow of each of the rows, shape [len(rows)]."""
        return _reduced(np.maximum, (self._overflow_of(column, rows) for column in self._columns))

    @staticmethod
    def _overflow_of(column: Column, rows: AnyRows) -> Floats:
        allocatable, used, tentative, _, demand = column
        found: Floats = used[rows] + tentative[rows]
        found += demand
        found -= allocatable[rows]
        found /= demand
        return found

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
        for name, (allocatable, used, tentative, _, demand) in zip(self._names, self._columns, strict=False):
            # All rows first, because they are mostly asked for, and a slice is read so much faster.
            yield name, (used + tentative + demand > allocatable)[rows]
        everywhere = np.ones(len(rows), dtype=bool)
        yield from ((name, everywhere) for name in self._not_offered)

    def fits_beside_held(self, row: int) -> bool:
        """Whether one more task fits beside the pods on the node; tentative placements do not count."""
        for allocatable, used, _, _, demand in self._resources:
            if used[row] + demand > allocatable[row]:
                return False
        return True

    def fit_beside_held(self, rows: Rows) -> Mask:
        """The same for each of the rows, shape [len(rows)]."""
        fits: Mask = reduce(
            np.logical_and,
            (used[rows] + demand <= allocatable[rows] for allocatable, used, _, _, demand in self._columns),
        )
        return fits

    # -- slots ---------------------------------------------------------------------------------

    def service_slots(self, rows: AnyRows) -> Floats:
        """Tasks that fit beside the services of each of the rows, shape [len(rows)]."""
        slots = _reduced(np.minimum, (self._slots_of(column, rows) for column in self._columns))
        np.floor(slots, out=slots)
        return np.maximum(slots, 0.0, out=slots)

    @staticmethod
    def _slots_of(column: Column, rows: AnyRows) -> Floats:
        allocatable, _, _, long_running, demand = column
        found: Floats = allocatable[rows] - long_running[rows]
        found /= demand
        return found

    def service_slots_at(self, row: int) -> int:
        """Tasks that fit beside the services of one row."""
        least = min(
            (allocatable[row] - long_running[row]) / demand
            for allocatable, _, _, long_running, demand in self._resources
        )
        return max(floor(least), 0)

    def empty_capacity(self, rows: AnyRows) -> Floats:
        """Tasks that fit on each of the rows when it is empty, shape [len(rows)]."""
        least = _reduced(
            np.minimum, (allocatable[rows] / demand for allocatable, _, _, _, demand in self._columns)
        )
        return np.floor(least, out=least)


def _reduced(function: np.ufunc, arrays: Iterator[Floats]) -> Floats:
    """The first array, changed by `function` with each of the others."""
    found = next(arrays)
    for each in arrays:
        function(found, each, out=found)
    return found
