"""What nodes have and what is held of it: a table of N rows (nodes) by R columns (resources), in four layers.

Arrays are float64: whole amounts up to 2**53 are exact, and the overflow of a class (feasibility/room.py)
needs no conversion. A resource that a node offers for the first time adds a column.

A pod may name any resource, thousands of them in one pod, and a column costs a number for each node. So
only nodes open columns, each few of them, and all not many: they stay when a node has gone. What a pod on a
node holds of another resource is kept apart, and moves into the table when a node offers the resource.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.memo import Memo
from eclectus.cluster.scalars import WritableScalars, read_only, scalars_by_column
from eclectus.model.objects import Amounts, Spec, Task

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


PODS = "pods"
FIRST_COLUMNS = (PODS, "cpu", "memory", "ephemeral-storage")
# That one node has opened, and all have: of further new resources a node offers nothing, but for HUGE_PAGES.
COLUMNS_OF_NODE_MOST, COLUMNS_MOST = 128, 512  # 80 MB on 5,000 nodes, in four layers of 8 bytes
HUGE_PAGES = frozenset(f"hugepages-{2**at}{unit}" for unit in ("Ki", "Mi", "Gi") for at in range(10))
MIN_CHANGE_LOG_ENTRIES = 512  # or two a row, if that is more: to read more costs as much as to start over

# What one pod counts for at most: 70 TB of memory, 70 billion cores. So the sums over the pods of a node are
# exact, and a pod that leaves gives back what it took. A pod that nobody has scheduled may claim any amount.
MOST_HELD = 2.0**46

ALLOCATABLE, USED, TENTATIVE, LONG_RUNNING = range(4)  # layers of the table

Vector = NDArray[np.float64]
Parts = tuple[tuple[int, float], ...]
"""(column, amount): what a pod takes of what nodes offer, without zero amounts."""
Entries = tuple[tuple[WritableScalars[float], float], ...]
"""(a column of one layer, amount to add to a row of it): how a pod is entered in the table."""


class ResourceTable:
    """Amounts by layer, row and column; `Cluster` in nodes.py maps nodes to rows.

    Read-only arrays: `allocatable`, `used`, `tentative` (what waiting pods will hold), `long_running` (the
    part of `used` held by services, which do not end), each of shape [rows, columns]; `layers` [4, rows,
    columns], all of them; `scored` [rows, 2], cpu and memory held, with Kubernetes' defaults for best-effort
    containers.

    All of them are replaced when rows or columns are added; `shape` then reports every row as changed.
    """

    def __init__(self, rows: int) -> None:
        self._columns: dict[str, int] = {name: i for i, name in enumerate(FIRST_COLUMNS)}
        self.columns: Mapping[str, int] = self._columns  # resource -> column, in the order of columns
        self._opened = Counter[str]()  # columns by the name of the node that has opened them, if any
        self.shape, self.usage, self.held = (ChangeLog[int](MIN_CHANGE_LOG_ENTRIES) for _ in range(3))
        self.unoffered = UnofferedAmounts()  # what pods hold of resources without a column
        self._make_memos()
        self._set_arrays(np.zeros((4, rows, len(self._columns))), np.zeros((rows, 2)))

    def add_tentative(self, row: int, amounts: Amounts, times: int = 1) -> None:
        """A pod with these requests begins to wait for a node or, with times = -1, no longer does."""
        for column, amount in self._tentative[amounts]:
            column[row] += times * amount
        self.usage.record(row)

    def copy_amounts(self, source: ResourceTable) -> None:
        """Take over all amounts of a table with the same rows and columns."""
        self._layers[:], self._scored[:] = source.layers, source.scored
        self.usage.record_all()
        self.held.record_all()

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        self._columns = dict(self._columns)
        self.columns, self._opened = self._columns, self._opened.copy()
        self.shape, self.usage, self.held = (ChangeLog[int](MIN_CHANGE_LOG_ENTRIES) for _ in range(3))
        self.unoffered = copy(self.unoffered).detach()
        self._make_memos()  # they compute with the table that made them
        self._set_arrays(self._layers.copy(), self._scored.copy())
        return self

    def offered_by(self, node: str, amounts: Amounts) -> Vector:
        """What a node offers as one row, shape [columns]; a resource not offered before adds a column."""
        new = [name for name, _ in amounts if name not in self._columns]
        if new:
            left = min(COLUMNS_OF_NODE_MOST - self._opened[node], COLUMNS_MOST - len(self._columns))
            opened = set([name for name in new if name not in HUGE_PAGES][: max(left, 0)])
            self._opened[node] += len(opened)
            self.open_columns(name for name in new if name in HUGE_PAGES or name in opened)
        row = np.zeros(len(self._columns))
        for name, amount in amounts:
            if name in self._columns:
                row[self._columns[name]] = amount
        return row

    def task_vector(self, amounts: Amounts) -> Vector:
        """What a pod with these requests takes of what nodes offer, one of `pods` too; shape [columns]."""
        row = np.zeros(len(self._columns))
        for column, amount in self.parts(amounts):
            row[column] = amount
        return row

    def parts(self, amounts: Amounts) -> Parts:
        """The same as (column, amount), ascending by column."""
        return self._parts[amounts]

    def held_parts(self, task: Task) -> Parts:
        """What a pod on a node takes of what nodes offer, as (column, amount), ascending by column."""
        return self._bounded[task.holding]

    def _make_memos(self) -> None:
        """Of what is computed once per distinct pod, because every pod that comes or goes is entered."""
        self._parts = Memo(self._compute_parts, self._all_offered)
        self._bounded = Memo(self._bounded_parts, self._all_offered)
        self._held = Memo(self._held_entries, lambda kind: self._all_offered(_amounts_held(*kind)))
        self._tentative = Memo(lambda each: tuple(self._entries(TENTATIVE, each)), self._all_offered)

    def _bounded_parts(self, amounts: Amounts) -> Parts:
        return tuple((column, min(amount, MOST_HELD)) for column, amount in self.parts(amounts))

    def not_offered(self, amounts: Amounts) -> Amounts:
        """Those of the amounts of which no node offers anything."""
        if self._all_offered(amounts):
            return ()
        return tuple((name, amount) for name, amount in amounts if name not in self._columns)

    def _all_offered(self, amounts: Amounts) -> bool:
        return all(name in self._columns for name, _ in amounts)

    def _compute_parts(self, amounts: Amounts) -> Parts:
        columns = self._columns
        parts = {columns[name]: float(amount) for name, amount in amounts if amount and name in columns}
        parts[columns[PODS]] = 1.0
        return tuple(sorted(parts.items()))

    def _held_entries(self, kind: tuple[Spec, Amounts | None]) -> Entries:
        """The entries of pods with this spec that hold these amounts, or their requests if None."""
        spec, held = kind
        amounts = _amounts_held(spec, held)
        entries = [
            (column, min(amount, MOST_HELD))
            for layer in ((USED, LONG_RUNNING) if spec.long_running else (USED,))
            for column, amount in self._entries(layer, amounts)
        ]
        bounded = (min(each, MOST_HELD) for each in spec.score_requests)
        scored = zip(self._scored_columns, bounded, strict=True)
        return (*entries, *((column, amount) for column, amount in scored if amount))

    def _entries(self, layer: int, amounts: Amounts) -> Iterator[tuple[WritableScalars[float], float]]:
        columns = self._layer_columns[layer]
        yield from ((columns[column], amount) for column, amount in self.parts(amounts))
        for resource, amount in self.not_offered(amounts):
            yield self.unoffered.column(resource, layer), amount

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now, the new ones all zero."""
        more = rows - len(self._scored)
        layers = np.pad(self._layers, ((0, 0), (0, more), (0, 0)))
        self._set_arrays(layers, np.pad(self._scored, ((0, more), (0, 0))))

    def open_columns(self, resources: Iterable[str]) -> None:
        """Columns for these resources, with what pods hold of them already; for those that have none."""
        resources = [name for name in resources if name not in self._columns]
        if not resources:
            return
        layers = np.pad(self._layers, ((0, 0), (0, 0), (0, len(resources))))
        for resource in resources:
            column = self._columns[resource] = len(self._columns)
            for layer in range(len(layers)):
                for row, amount in self.unoffered.take(resource, layer).items():
                    layers[layer, row, column] = amount
        self._set_arrays(layers, self._scored)

    def _set_arrays(self, layers: NDArray[np.float64], scored: NDArray[np.float64]) -> None:
        # In memory one column after the other: reading a column of all nodes takes a third of the time then.
        layers = np.ascontiguousarray(layers.transpose(0, 2, 1)).transpose(0, 2, 1)
        self._layers, self._scored = layers, scored
        self._layer_columns = tuple(map(scalars_by_column, layers))
        self._scored_columns = scalars_by_column(scored)
        self.layers, self.scored = read_only(layers), read_only(scored)
        self.allocatable, self.used, self.tentative, self.long_running = self.layers
        self._held.clear()  # their entries point into the arrays before
        self._tentative.clear()
        for log in (self.shape, self.usage, self.held):
            log.allow(max(MIN_CHANGE_LOG_ENTRIES, 2 * len(scored)))
        self.shape.record_all()

    def _clear_row(self, row: int) -> None:
        self._layers[:, row] = 0
        self._scored[row] = 0
        self.unoffered.clear_row(row)


def _amounts_held(spec: Spec, held: Amounts | None) -> Amounts:
    return spec.requests if held is None else held
