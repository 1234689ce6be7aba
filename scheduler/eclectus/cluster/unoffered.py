"""Amounts that pods hold of resources that no node offers, kept apart from the table of resources.

A pod may name any resource, thousands of them in one pod, and a column costs a number for each node. So only
nodes open columns. What a pod on a node holds of another resource is kept here, and moves into the table when
a node offers the resource.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

from eclectus.cluster.scalars import WritableScalars

Layer = int


class UnofferedAmounts:
    """Amounts by resource, layer and row. An amount that becomes zero leaves nothing behind."""

    def __init__(self) -> None:
        self._columns: dict[tuple[str, Layer], _SparseColumn] = {}

    def __len__(self) -> int:
        """Resources of which something is held, each counted once for each layer."""
        return len(self._columns)

    def column(self, resource: str, layer: Layer) -> WritableScalars[float]:
        """The amounts of a resource by row, to be read and written; valid until the next amount is zero."""
        key = (resource, layer)
        found = self._columns.get(key)
        if found is None:
            found = self._columns[key] = _SparseColumn(lambda: self._columns.pop(key, None))
        return found

    def take(self, resource: str, layer: Layer) -> Mapping[int, float]:
        """The amounts by row; they are kept here no longer."""
        return self._columns.pop((resource, layer), {})

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        shared, self._columns = self._columns, {}
        for (resource, layer), amounts in shared.items():
            column = self.column(resource, layer)
            for row, amount in amounts.items():
                column[row] = amount
        return self

    def clear_row(self, row: int) -> None:
        """Nothing is held on this row any more."""
        for column in list(self._columns.values()):
            column[row] = 0.0


class _SparseColumn(dict[int, float]):
    """Amounts by row, zero where there is none; says when the last one has gone."""

    def __init__(self, is_empty: Callable[[], object]) -> None:
        super().__init__()
        self._is_empty = is_empty

    def __missing__(self, row: int) -> float:
        return 0.0

    def __setitem__(self, row: int, amount: float) -> None:
        if amount:
            super().__setitem__(row, amount)
        else:
            self.pop(row, None)
            if not self:
                self._is_empty()
