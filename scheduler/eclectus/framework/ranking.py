"""The nodes of one class ranked by a cost; the best one is found without reading all of them.

Costs are kept in blocks, with the least cost of each block. A change of a node updates its block. Finding
the best node reads the least cost of every block and the costs of one block: about the square root of the
number of nodes. numpy makes this fast: 15,000 nodes take a few microseconds more than 500. (A heap is
O(log n) in theory, but every change of a cost would leave a stale entry to be removed in Python.)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.scalars import scalars
from eclectus.feasibility.task_class import TaskClass

Cost = Callable[[TaskClass, Rows], NDArray[np.float64]]
"""The cost of each of these rows, shape [len(rows)]: smaller is better, inf excludes the node."""

CostOfFew = Callable[[TaskClass, Sequence[int]], Iterable[float]]
"""The same of a few rows, equal to the last bit: plain numbers are several times as fast for these."""

FEW = 8  # rows, up to which plain numbers cost less
BLOCK = 64  # rows in a block: near the square root of a few thousand nodes


class Ranking:
    """The nodes of one class, ranked by one cost function. `epoch`: of the policy, see `View.ranking`.

    `cost`, `cost_of_few`: they may be set to other functions with the same results.
    """

    def __init__(self, task_class: TaskClass, cost: Cost, epoch: Hashable = None) -> None:
        self._class, self.cost, self.epoch = task_class, cost, epoch
        self.cost_of_few: CostOfFew | None = None
        self._epoch = -1
        self._shape_cursor = self._usage_cursor = -1
        self._flip_cursors: list[int] = []  # of each log of the class

    def best(self) -> tuple[int, float] | None:
        """Row and cost of the best node, the lowest row among equals; None if every cost is inf."""
        block = int(self._least.argmin())
        cost = float(self._least[block])
        return None if cost == np.inf else (block * BLOCK + int(self._blocks[block].argmin()), cost)

    def draw_best(self, rng: Random) -> tuple[int, float] | None:
        """Row and cost of a best node, drawn uniformly among equals; None if every cost is inf."""
        cost = float(self._least.min())
        if cost == np.inf:
            return None
        blocks = np.flatnonzero(self._least == cost)
        equal = np.flatnonzero(self._blocks.take(blocks, axis=0) == cost)
        block, column = divmod(int(equal[rng.randrange(len(equal))]), BLOCK)
        return int(blocks[block]) * BLOCK + column, cost

    def first(self, count: int) -> list[tuple[int, float]]:
        """Rows and costs of the best nodes, the best one first; not those whose cost is inf. O(rows)."""
        rows = np.argsort(self._costs, kind="stable")[:count]
        costs = self._costs[rows]
        return [(int(row), float(cost)) for row, cost in zip(rows, costs, strict=True) if cost < np.inf]

    def cost_at(self, row: int) -> float:
        """The cost of a row as it was refreshed last."""
        return float(self._costs[row])

    def refresh(self, epoch: int) -> None:
        """Update the costs of the rows that changed, or of all rows if the epoch of the speeds is new.

        The class must be up to date already.
        """
        cluster = self._class.cluster
        shape_end, usage_end = cluster.shape.head, cluster.usage.head
        if epoch != self._epoch:
            reshaped = None
        elif shape_end != self._shape_cursor:
            reshaped = cluster.shape.since(self._shape_cursor)
        elif usage_end != self._usage_cursor:
            reshaped = []
        else:
            return
        reused, flipped = cluster.usage.since(self._usage_cursor), self._flipped()
        if reshaped is None or reused is None or flipped is None:
            self._rebuild()
        else:
            single = [row for each in flipped if len(each) == 1 for row in each.tolist()]
            rows = sorted({*reshaped, *reused, *single}) if reshaped or single else reused
            if self.cost_of_few is not None and len(rows) <= FEW:
                for row, cost in zip(rows, self.cost_of_few(self._class, rows), strict=True):
                    self._set(row, cost)
            else:
                self._update(np.array(rows, dtype=np.intp))
            for each in flipped:
                if len(each) > 1:
                    self._update(each)
        self._flip_cursors = [log.head for log in self._class.flips]
        # Last, because a cost function that raises must be called again for the same rows.
        self._epoch, self._shape_cursor, self._usage_cursor = epoch, shape_end, usage_end

    def _flipped(self) -> list[Rows] | None:
        """Arrays of rows that other pods may have changed; None if all may be."""
        found: list[Rows] = []
        for log, cursor in zip(self._class.flips, self._flip_cursors, strict=False):
            flipped = log.entries_since(cursor)
            if flipped is None:
                return None
            found += flipped
        return found

    def _rebuild(self) -> None:
        rows = len(self._class.cluster.names)
        self._costs = np.full(-(-self._class.cluster.capacity // BLOCK) * BLOCK, np.inf)
        self._costs[:rows] = self.cost(self._class, np.arange(rows, dtype=np.intp))
        self._blocks = self._costs.reshape(-1, BLOCK)  # a view of the same numbers
        self._least = self._blocks.min(axis=1)
        self._costs_at, self._least_at = scalars(self._costs), scalars(self._least)

    def _set(self, row: int, cost: float) -> None:
        block, before = row // BLOCK, self._costs_at[row]
        self._costs_at[row] = cost
        if cost <= self._least_at[block]:
            self._least_at[block] = cost
        elif before == self._least_at[block]:
            column = int(self._blocks[block].argmin())  # a third of the time of `min`
            self._least_at[block] = self._costs_at[block * BLOCK + column]

    def _update(self, rows: Rows) -> None:
        self._costs[rows] = self.cost(self._class, rows)
        if len(rows) > len(self._least):  # a topology domain: each block would be read for each of its rows
            self._blocks.min(axis=1, out=self._least)
            return
        touched = rows // BLOCK
        self._least[touched] = self._blocks.take(touched, axis=0).min(axis=1)
