"""The books: what nodes have and what is held of it, N rows of nodes by R columns of resources.

Arrays are float64: whole amounts up to 2**53 stay exact, and the overflow of a class
(feasibility/classes.py) needs no conversion. A resource never seen before opens a column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.memo import Memo
from eclectus.cluster.scalars import Scalars, scalars_by_column
from eclectus.model.objects import Amounts, Spec

PODS = "pods"
FIRST_COLUMNS = (PODS, "cpu", "memory", "ephemeral-storage")
MIN_CHANGE_LOG_ENTRIES = (
    512  # or two for each row, if that is more: reading more costs as much as starting over
)

ALLOCATABLE, USED, TENTATIVE, LONG_RUNNING = range(4)  # pages of the ledger

Vector = NDArray[np.float64]
Parts = tuple[tuple[int, float], ...]
"""(column, amount): what a pod takes, and no zero amounts."""
Entries = tuple[tuple[Scalars[float], float], ...]
"""(cells of a column, amount): where a pod is entered in the books, and no zero amounts."""


class ResourceTable:
    """Amounts by row and column; core/cluster.py says whose rows they are.

    Arrays (read them, do not write them): `allocatable`, `used`, `meant`, `lasting` (the part of
    `used` held by services, which do not end) of shape [rows, columns], the four pages of `ledger`,
    from which a rule gathers its rows at once, and `pages`, the same for single numbers: page, column, row;
    `scored` [rows, 2] (cpu, memory with defaults for best-effort pods).
    """

    def __init__(self, rows: int) -> None:
        self.columns: dict[str, int] = {name: i for i, name in enumerate(FIRST_COLUMNS)}
        self.shape, self.usage = ChangeLog(MIN_CHANGE_LOG_ENTRIES), ChangeLog(MIN_CHANGE_LOG_ENTRIES)
        # What pods of one kind take is reckoned once, since every pod that comes or goes is entered.
        self._parts = Memo(self._parts_of)
        self._held = Memo(self._held_entries)
        self._tentative_of = Memo(self._tentative_entries)
        self._set_arrays(np.zeros((4, rows, len(self.columns))), np.zeros((rows, 2)))

    def add_tentative(self, row: int, amounts: Amounts, times: int = 1) -> None:
        """A waiting pod is meant for a node (or, with times = -1, no longer is)."""
        for column, amount in self._tentative_of[amounts]:
            column[row] += times * amount
        self.usage.record(row)

    # -- amounts -------------------------------------------------------------------------------

    def vector(self, amounts: Amounts) -> Vector:
        """Amounts as one row [columns]; unknown resources open new columns."""
        for name, _ in amounts:
            if name not in self.columns:
                self._add_column(name)
        row = np.zeros(len(self.columns))
        for name, amount in amounts:
            row[self.columns[name]] = amount
        return row

    def task_vector(self, amounts: Amounts) -> Vector:
        """What a pod of these requests takes: its amounts and one of the node's pod places."""
        row = self.vector(amounts)
        row[self.columns[PODS]] = 1
        return row

    def parts(self, amounts: Amounts) -> Parts:
        """The same, column by column."""
        return self._parts[amounts]

    def _parts_of(self, amounts: Amounts) -> Parts:
        row = self.task_vector(amounts)
        return tuple((column, row.item(column)) for column in np.flatnonzero(row).tolist())

    def _held_entries(self, kind: tuple[Spec, Amounts | None]) -> Entries:
        """Where pods of this spec are entered while they hold these amounts, or what they ask for."""
        spec, held = kind
        amounts = spec.requests if held is None else held
        parts = self.parts(amounts)  # may widen the arrays: before their pages
        layers = (USED, LONG_RUNNING) if spec.long_running else (USED,)
        entries = [
            (self.layer_scalars[layer][column], amount) for layer in layers for column, amount in parts
        ]
        scored = zip(self._scored_columns, spec.score_requests, strict=True)
        return (*entries, *((column, amount) for column, amount in scored if amount))

    def _tentative_entries(self, amounts: Amounts) -> Entries:
        parts = self.parts(amounts)  # may widen the arrays: before their pages
        return tuple((self.layer_scalars[TENTATIVE][column], amount) for column, amount in parts)

    # -- rows and columns ----------------------------------------------------------------------

    def grow_rows(self, rows: int) -> None:
        """Make room for so many rows."""
        more = rows - len(self.scored)
        layers = np.pad(self.layers, ((0, 0), (0, more), (0, 0)))
        self._set_arrays(layers, np.pad(self.scored, ((0, more), (0, 0))))

    def _add_column(self, resource: str) -> None:
        self.columns[resource] = len(self.columns)
        self._set_arrays(np.pad(self.layers, ((0, 0), (0, 0), (0, 1))), self.scored)
        self._parts.clear()

    def _set_arrays(self, layers: NDArray[np.float64], scored: NDArray[np.float64]) -> None:
        self.layers, self.scored = layers, scored
        self.allocatable, self.used, self.tentative, self.long_running = layers
        self.layer_scalars = tuple(map(scalars_by_column, layers))
        self._scored_columns = scalars_by_column(scored)
        self._held.clear()  # entries in books that are closed
        self._tentative_of.clear()
        self.shape.most = self.usage.most = max(MIN_CHANGE_LOG_ENTRIES, 2 * len(scored))
        self.shape.record_all()

    def _clear_row(self, row: int) -> None:
        self.layers[:, row] = 0
        self.scored[row] = 0
