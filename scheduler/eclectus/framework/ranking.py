"""The nodes of one class ranked by a cost, the best one found without looking at all of them.

Costs stand in blocks, each block's least cost beside it: a changed node costs its block, the best
node costs one look over the block minima and one into a block. About the square root of the nodes,
at numpy's speed: 15,000 nodes cost a few microseconds more than 500. (A heap would be O(log n) on
paper, but every change of a key would leave a stale entry to be swept out in Python.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.task_class import TaskClass

Cost = Callable[[TaskClass, Rows], NDArray[np.float64]]
"""Cost of each of the rows, shape [len(rows)], smaller is better, inf where the class must not go."""

BLOCK = 64  # rows to a block: near the square root of a few thousand nodes


class Ranking:
    """One class by one cost."""

    def __init__(self, task_class: TaskClass, cost: Cost) -> None:
        self._class, self._cost = task_class, cost
        self._epoch = -1
        self._shape_place = self._usage_place = -1

    def best(self) -> tuple[int, float] | None:
        """Row and cost of the best node, the lowest row among equals; None where every cost is inf."""
        block = int(self._least.argmin())
        cost = float(self._least[block])
        return None if cost == np.inf else (block * BLOCK + int(self._blocks[block].argmin()), cost)

    def refresh(self, epoch: int) -> None:
        """Catch up with a class that is itself up to date; a new epoch of speeds re-ranks every node."""
        cluster = self._class.cluster
        shape_end, usage_end = cluster.shape.head, cluster.usage.head
        if epoch != self._epoch:
            reshaped = None
        elif shape_end == self._shape_place and usage_end == self._usage_place:
            return
        else:
            reshaped = cluster.shape.since(self._shape_place)
        reused = cluster.usage.since(self._usage_place)
        if reshaped is None or reused is None:
            self._rebuild()
        else:
            rows = sorted({*reshaped, *reused}) if reshaped else reused
            self._update(np.array(rows, dtype=np.intp))
        self._epoch, self._shape_place, self._usage_place = epoch, shape_end, usage_end  # it may have raised

    def _rebuild(self) -> None:
        rows = self._class.cluster.capacity
        self._costs = np.full(-(-rows // BLOCK) * BLOCK, np.inf)
        self._costs[:rows] = self._cost(self._class, np.arange(rows, dtype=np.intp))
        self._blocks = self._costs.reshape(-1, BLOCK)  # the same numbers, seen as blocks
        self._least = self._blocks.min(axis=1)

    def _update(self, rows: Rows) -> None:
        self._costs[rows] = self._cost(self._class, rows)
        touched = rows // BLOCK
        self._least[touched] = self._blocks.take(touched, axis=0).min(axis=1)
