"""The nodes of one class ranked by a cost; the best one is found without reading all of them.

Costs are kept in blocks, with the least cost of each block. A change of a node updates its block. Finding
the best node reads the least cost of every block and the costs of one block: about the square root of the
number of nodes. numpy makes this fast: 15,000 nodes take a few microseconds more than 500. (A heap is
O(log n) in theory, but every change of a cost would leave a stale entry to be removed in Python.)

A pod that is placed may change the preference scores of all nodes (scores_by_pods.py). So a cost may be given
in two parts: without preferences, which is kept and computed again for changed nodes only, and how
preferences weigh in it, a few operations over all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import AnyRows, EntryLog, Rows
from eclectus.cluster.scalars import scalars
from eclectus.feasibility.task_class import TaskClass

Cost = Callable[[TaskClass, Rows], NDArray[np.float64]]
"""The cost of each of these rows, shape [len(rows)]: smaller is better, inf excludes the node."""

CostOfFew = Callable[[TaskClass, Sequence[int]], Iterable[float]]
"""The same of a few rows, equal to the last bit: plain numbers are several times as fast for these."""

Weigh = Callable[[TaskClass, NDArray[np.float64], AnyRows], NDArray[np.float64]]
"""Costs from costs without preferences, and these rows' preferences; inf stays inf."""

FEW = 8  # rows, up to which plain numbers cost less
BLOCK = 64  # rows in a block: near the square root of a few thousand nodes

Logs = Sequence[EntryLog[Rows]]
Position = tuple[int, Hashable, int, int]
"""Epoch of the speeds, epoch of the weights, ends of the logs of shape and usage."""


class Ranking:
    """The nodes of one class, ranked by one cost function. `epoch`: of the policy, see `View.ranking`.

    `cost`, `cost_of_few`: they may be set to other functions with the same results; with `weigh` a cost is
    without preferences, and few rows have none of their own. `weigh` may be set to another function where
    `refresh` gets another epoch with it.
    """

    def __init__(self, task_class: TaskClass, cost: Cost, epoch: Hashable = None) -> None:
        self._class, self.cost, self.epoch = task_class, cost, epoch
        self.cost_of_few: CostOfFew | None = None
        self.weigh: Weigh | None = None
        self._position: Position = (-1, None, -1, -1)
        self._flip_cursors: list[int] = []  # of each log of the class
        self._score_cursors: list[int] = []

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

    def refresh(self, epoch: int, weigh_epoch: Hashable = None) -> None:
        """Update the costs of the rows that changed, or of all rows if the epoch of the speeds is new.

        With another `weigh_epoch` preferences weigh otherwise in all of them. The class must be up to date
        already.
        """
        cluster = self._class.cluster
        position = (epoch, weigh_epoch, cluster.shape.head, cluster.usage.head)
        if position == self._position:
            return
        in_cost, apart = self._logs()
        changed = None if epoch != self._position[0] else self._changed(in_cost)
        scored = None if weigh_epoch != self._position[1] else _since(apart, self._score_cursors)
        if changed is None:
            self._rebuild()
        else:
            self._update(*changed, scored)
        self._flip_cursors = [log.head for log in in_cost]
        self._score_cursors = [log.head for log in apart]
        # Last, because a cost function that raises must be called again for the same rows.
        self._position = position

    def _logs(self) -> tuple[Logs, Logs]:
        """What other pods may have changed: in `cost`, and in what `weigh` reads."""
        rules, scores = self._class.flips, self._class.score_flips
        return ((*rules, *scores), ()) if self.weigh is None else (rules, scores)

    def _changed(self, logs: Logs) -> tuple[Sequence[int], list[Rows]] | None:
        """Rows whose cost may be another one, and arrays of such rows; None if all may be."""
        cluster, (_, _, shape_cursor, usage_cursor) = self._class.cluster, self._position
        reshaped, reused = cluster.shape.since(shape_cursor), cluster.usage.since(usage_cursor)
        flipped = _since(logs, self._flip_cursors)
        if reshaped is None or reused is None or flipped is None:
            return None
        single = [row for each in flipped if len(each) == 1 for row in each.tolist()]
        rows = sorted({*reshaped, *reused, *single}) if reshaped or single else reused
        return rows, [each for each in flipped if len(each) > 1]

    def _rebuild(self) -> None:
        rows = len(self._class.cluster.names)
        self._costs = np.full(-(-self._class.cluster.capacity // BLOCK) * BLOCK, np.inf)
        self._unweighed = self._costs if self.weigh is None else self._costs.copy()
        self._unweighed[:rows] = self.cost(self._class, np.arange(rows, dtype=np.intp))
        self._blocks = self._costs.reshape(-1, BLOCK)  # a view of the same numbers
        self._least = np.empty(len(self._blocks))
        self._costs_at, self._least_at = scalars(self._costs), scalars(self._least)
        self._weigh_all()

    def _update(self, single: Sequence[int], together: list[Rows], scored: list[Rows] | None) -> None:
        """`scored`: rows whose preferences are met otherwise; None for all."""
        if self.cost_of_few is not None and len(single) <= FEW:
            for row, cost in zip(single, self.cost_of_few(self._class, single), strict=True):
                self._set(row, cost)
        elif single:
            together = [np.array(single, dtype=np.intp), *together]
        for rows in together:
            self._unweighed[rows] = self.cost(self._class, rows)
        if scored is None:
            self._weigh_all()
            return
        for rows in (*together, *scored):
            if self.weigh is not None:
                self._costs[rows] = self.weigh(self._class, self._unweighed[rows], rows)
            self._find_least(rows)

    def _weigh_all(self) -> None:
        if self.weigh is not None:
            rows = slice(len(self._class.cluster.names))
            self._costs[rows] = self.weigh(self._class, self._unweighed[rows], rows)
        self._blocks.min(axis=1, out=self._least)

    def _set(self, row: int, cost: float) -> None:
        block, before = row // BLOCK, self._costs_at[row]
        self._costs_at[row] = cost
        if cost <= self._least_at[block]:
            self._least_at[block] = cost
        elif before == self._least_at[block]:
            column = int(self._blocks[block].argmin())  # a third of the time of `min`
            self._least_at[block] = self._costs_at[block * BLOCK + column]

    def _find_least(self, rows: Rows) -> None:
        if len(rows) > len(self._least):  # a topology domain: each block would be read for each of its rows
            self._blocks.min(axis=1, out=self._least)
            return
        touched = rows // BLOCK
        self._least[touched] = self._blocks.take(touched, axis=0).min(axis=1)


def _since(logs: Logs, cursors: Sequence[int]) -> list[Rows] | None:
    """The entries of all logs since these cursors; None if a log does not reach back so far."""
    found: list[Rows] = []
    for log, cursor in zip(logs, cursors, strict=False):
        entries = log.entries_since(cursor)
        if entries is None:
            return None
        found += entries
    return found
