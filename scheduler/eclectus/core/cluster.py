"""The cluster as arrays: N rows of nodes by R columns of resources, changed in place, row by row.

Rows are reused when nodes go; names map to rows. Arrays are float64: whole amounts up to 2**53 stay
exact, and the overflow of a class (feasibility/classes.py) needs no conversion.

Two journals tell what changed: `shape` (allocatable, labels, taints, cordon) and `usage` (what is
held or meant for a node, and how fast it is known to be).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from eclectus.core.cells import Cells, columns_of
from eclectus.core.devices import Devices
from eclectus.core.guards import Guards
from eclectus.core.journal import Journal
from eclectus.core.labels import ABSENT, LabelColumns
from eclectus.core.model import DEVICE_MILLI, Amounts, HostPort, Node, Spec, Taint, Task, amount_of
from eclectus.core.reckoned import Reckoned

PODS = "pods"
JOURNAL_LEAST = 512  # entries kept, or two a row where that is more: reading so many is dear as a new look
LOAD_STEP = 0.05  # of a node: what measured load must have changed by to count
BACKGROUND_MOST = 0.95  # of a node: however busy it is, its line moves on
FIRST_COLUMNS = (PODS, "cpu", "memory", "ephemeral-storage")

ALLOCATABLE, USED, MEANT, LASTING = range(4)  # pages of the ledger

Vector = NDArray[np.float64]
Parts = tuple[tuple[int, float], ...]
"""(column, amount): what a pod takes, and no zero amounts."""
Entries = tuple[tuple[Cells[float], float], ...]
"""(cells of a column, amount): where a pod is entered in the books, and no zero amounts."""


class Cluster:
    """All nodes and all that is held on them.

    Arrays (read them, do not write them): `allocatable`, `used`, `meant`, `lasting` (the part of
    `used` held by services, which do not end) of shape [rows, columns], the four pages of `ledger`,
    from which a rule gathers its rows at once, and `pages`, the same for single numbers: page, column, row;
    `scored` [rows, 2] (cpu, memory with defaults for best-effort pods); `idle` [rows], the share of the
    node that load nobody has asked room for leaves, 0..1; `present`, `cordoned` [rows];
    `taint_set` [rows], an index into `taint_sets`.
    """

    def __init__(self, rows: int = 64) -> None:
        self.columns: dict[str, int] = {name: i for i, name in enumerate(FIRST_COLUMNS)}
        self.rows: dict[str, int] = {}
        self.names: list[str] = []
        self.shape, self.usage = Journal(JOURNAL_LEAST), Journal(JOURNAL_LEAST)
        self.labels = LabelColumns(rows)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self.port_rows: dict[HostPort, dict[int, int]] = defaultdict(dict)  # port -> row -> holders
        self.guards = Guards()
        self.services_changed = 0  # grows when a service takes or gives back room
        self.devices: Devices | None = None  # opened by the first node that has any
        self._taint_index: dict[tuple[Taint, ...], int] = {(): 0}
        self._free_rows: list[int] = []
        self._nodes: dict[str, Node] = {}
        # What pods of one kind take is reckoned once, since every pod that comes or goes is entered.
        self._parts = Reckoned(self._parts_of)
        self._held = Reckoned(self._held_by)
        self._meant = Reckoned(self._meant_for)
        self._allot(rows, len(self.columns))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def capacity(self) -> int:
        """Rows in the arrays, used or not: the length of every array over nodes."""
        return len(self.present)

    def node(self, name: str) -> Node | None:
        """The node as last seen."""
        return self._nodes.get(name)

    # -- nodes ---------------------------------------------------------------------------------

    def put_node(self, node: Node) -> int:
        """Take in a new or changed node and return its row. An equal node changes nothing."""
        before = self._nodes.get(node.name)
        if before == node:
            return self.rows[node.name]
        if before is not None and before.labels != node.labels and len(self.guards):
            self.usage.restart()  # what a resident guards may be another domain now
        self._nodes[node.name] = node
        row = self._row_for(node.name)
        vector = self.vector(node.allocatable)  # may widen the arrays: before the write
        self.allocatable[row] = vector
        self.cordoned[row] = node.unschedulable
        self.taint_set[row] = self._intern_taints(node.taints)
        self.labels.put(row, node.labels)
        self._equip(row, before, node)
        self.present[row] = True
        self.shape.note(row)
        return row

    def see_loads(self, loads: Mapping[str, float]) -> None:
        """What is measured beyond what pods have asked for is background; nodes not named have none.

        Only changes by `LOAD_STEP` or more are taken, so that noise re-ranks nobody.
        """
        column = self.columns["cpu"]
        for name, row in self.rows.items():
            room = self.allocatable[row, column]
            asked = self.used[row, column] / room if room else 1.0
            idle = 1.0 - min(max(loads.get(name, 0.0) - asked, 0.0), BACKGROUND_MOST)
            if abs(idle - self.idle[row]) >= LOAD_STEP or idle == 1.0 != self.idle[row]:
                self.idle[row] = idle
                self.usage.note(row)

    def drop_node(self, name: str) -> int | None:
        """Forget a node. What was held on it must have been released before; returns its row."""
        row = self.rows.pop(name, None)
        if row is None:
            return None
        del self._nodes[name]
        self.names[row] = ""
        self.present[row] = False
        self.ledger[:, row] = 0
        self.scored[row] = 0
        self.idle[row] = 1.0
        if self.devices is not None:
            self.devices.clear(row)
        self.labels.clear(row)
        self._free_rows.append(row)
        self.shape.note(row)
        return row

    # -- what is held --------------------------------------------------------------------------

    def hold(self, row: int, task: Task) -> None:
        """A pod takes room on a node. Room is not checked: the API server is the truth, even over-full."""
        for column, amount in self._held[task.spec, task.held]:
            column[row] += amount
        if task.spec.lasting:
            self.services_changed += 1
        self.usage.note(row)
        if self.devices is not None:
            self.devices.hold(row, task)
        for port in task.spec.host_ports:
            holders = self.port_rows[port]
            holders[row] = holders.get(row, 0) + 1
        for guard in task.guards:
            self.guards.hold(guard, row)
            self._note_domain(row, guard.topology_key)

    def release(self, row: int, task: Task) -> None:
        """A pod, given as it was when it took its room, gives it back."""
        for column, amount in self._held[task.spec, task.held]:
            column[row] -= amount
        if task.spec.lasting:
            self.services_changed += 1
        self.usage.note(row)
        if self.devices is not None:
            self.devices.release(row, task.uid)
        for port in task.spec.host_ports:
            holders = self.port_rows[port]
            holders[row] -= 1
            if not holders[row]:
                del holders[row]
            if not holders:
                del self.port_rows[port]
        for guard in task.guards:
            self.guards.release(guard, row)
            self._note_domain(row, guard.topology_key)

    def mean_for(self, row: int, amounts: Amounts, times: int = 1) -> None:
        """A waiting pod is meant for a node (or, with times = -1, no longer is)."""
        for column, amount in self._meant[amounts]:
            column[row] += times * amount
        self.usage.note(row)

    # -- amounts -------------------------------------------------------------------------------

    def vector(self, amounts: Amounts) -> Vector:
        """Amounts as one row [columns]; unknown resources open new columns."""
        for name, _ in amounts:
            if name not in self.columns:
                self._widen(name)
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

    def _held_by(self, kind: tuple[Spec, Amounts | None]) -> Entries:
        """Where pods of this spec are entered while they hold these amounts, or what they ask for."""
        spec, held = kind
        amounts = spec.requests if held is None else held
        parts = self.parts(amounts)  # may widen the arrays: before their pages
        pages = (USED, LASTING) if spec.lasting else (USED,)
        entries = [(self.pages[page][column], amount) for page in pages for column, amount in parts]
        scored = zip(self._scored_columns, spec.score_requests, strict=True)
        return (*entries, *((column, amount) for column, amount in scored if amount))

    def _meant_for(self, amounts: Amounts) -> Entries:
        parts = self.parts(amounts)  # may widen the arrays: before their pages
        return tuple((self.pages[MEANT][column], amount) for column, amount in parts)

    # -- within --------------------------------------------------------------------------------

    def _note_domain(self, row: int, topology_key: str) -> None:
        """A guard reaches over its whole domain: every row of it has changed."""
        column = self.labels.column(topology_key)
        if column[row] != ABSENT:
            for each in np.flatnonzero(column == column[row]).tolist():
                self.usage.note(each)

    def _equip(self, row: int, before: Node | None, node: Node) -> None:
        had = 0 if before is None else amount_of(before.allocatable, DEVICE_MILLI)
        has = amount_of(node.allocatable, DEVICE_MILLI)
        if had != has:
            if self.devices is None:
                self.devices = Devices(self.capacity)
            self.devices.equip(row, had, has)

    def _row_for(self, name: str) -> int:
        row = self.rows.get(name)
        if row is not None:
            return row
        if self._free_rows:
            row = self._free_rows.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            self.names.append(name)
            if row == self.capacity:
                self._lengthen(2 * row)
        self.rows[name] = row
        return row

    def _intern_taints(self, taints: tuple[Taint, ...]) -> int:
        index = self._taint_index.setdefault(taints, len(self.taint_sets))
        if index == len(self.taint_sets):
            self.taint_sets.append(taints)
        return index

    def _allot(self, rows: int, columns: int) -> None:
        self.scored = np.zeros((rows, 2))
        self._scored_columns = columns_of(self.scored)
        self._open_ledger(np.zeros((4, rows, columns)))
        self.shape.most = self.usage.most = max(JOURNAL_LEAST, 2 * rows)
        self.idle = np.ones(rows)
        self.present = np.zeros(rows, dtype=bool)
        self.cordoned = np.zeros(rows, dtype=bool)
        self.taint_set = np.zeros(rows, dtype=np.intp)

    def _open_ledger(self, ledger: NDArray[np.float64]) -> None:
        self.ledger = ledger
        self.allocatable, self.used, self.meant, self.lasting = ledger
        self.pages = tuple(map(columns_of, ledger))
        self._held.clear()  # entries in books that are closed
        self._meant.clear()

    def _lengthen(self, rows: int) -> None:
        kept = {name: getattr(self, name) for name in _ROW_ARRAYS}
        self._allot(rows, len(self.columns))
        for name, array in kept.items():
            getattr(self, name)[: len(array)] = array
        self.labels.lengthen(rows)
        if self.devices is not None:
            self.devices.lengthen(rows)
        self.shape.restart()

    def _widen(self, resource: str) -> None:
        self.columns[resource] = len(self.columns)
        self._open_ledger(np.pad(self.ledger, ((0, 0), (0, 0), (0, 1))))
        self._parts.clear()
        self.shape.restart()


_ROW_ARRAYS = (
    "allocatable",
    "used",
    "meant",
    "lasting",
    "scored",
    "idle",
    "present",
    "cordoned",
    "taint_set",
)
