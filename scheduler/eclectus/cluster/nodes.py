"""The cluster as arrays: N rows of nodes, changed in place, row by row. What they hold is in books.py.

Rows are reused when nodes go; names map to rows.

Two journals tell what changed: `shape` (allocatable, labels, taints, cordon) and `usage` (what is
held or meant for a node, and how fast it is known to be).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from eclectus.cluster.anti_affinity import AntiAffinityTerms
from eclectus.cluster.devices import Devices
from eclectus.cluster.labels import ABSENT, LabelColumns
from eclectus.cluster.resources import ResourceTable
from eclectus.model.objects import DEVICE_MILLI, HostPort, Node, Taint, Task, amount_of

MIN_LOAD_CHANGE = 0.05  # of a node: what measured load must have changed by to count
MAX_BACKGROUND = 0.95  # of a node: however busy it is, its line moves on


class Cluster(ResourceTable):
    """All nodes and all that is held on them.

    Arrays beside those of the books (read them, do not write them): `idle` [rows], the share of the
    node that load nobody has asked room for leaves, 0..1; `present`, `cordoned` [rows];
    `taint_set` [rows], an index into `taint_sets`.
    """

    def __init__(self, rows: int = 64) -> None:
        super().__init__(rows)
        self.rows: dict[str, int] = {}
        self.names: list[str] = []
        self.labels = LabelColumns(rows)
        self.taint_sets: list[tuple[Taint, ...]] = [()]
        self.port_rows: dict[HostPort, dict[int, int]] = defaultdict(dict)  # port -> row -> holders
        self.anti_affinity = AntiAffinityTerms()
        self.service_changes = 0  # grows when a service takes or gives back room
        self.devices: Devices | None = None  # opened by the first node that has any
        self.background_free = np.ones(rows)
        self.present, self.cordoned = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool)
        self.taint_set = np.zeros(rows, dtype=np.intp)
        self._taint_index: dict[tuple[Taint, ...], int] = {(): 0}
        self._free_rows: list[int] = []
        self._nodes: dict[str, Node] = {}

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

    def set_node(self, node: Node) -> int:
        """Take in a new or changed node and return its row. An equal node changes nothing."""
        before = self._nodes.get(node.name)
        if before == node:
            return self.rows[node.name]
        if before is not None and before.labels != node.labels and len(self.anti_affinity):
            self.usage.record_all()  # what a resident guards may be another domain now
        self._nodes[node.name] = node
        row = self._row_for(node.name)
        vector = self.vector(node.allocatable)  # may widen the arrays: before the write
        self.allocatable[row] = vector
        self.cordoned[row] = node.unschedulable
        self.taint_set[row] = self._intern_taints(node.taints)
        self.labels.set_labels(row, node.labels)
        self._set_devices(row, before, node)
        self.present[row] = True
        self.shape.record(row)
        return row

    def set_loads(self, loads: Mapping[str, float]) -> None:
        """What is measured beyond what pods have asked for is background; nodes not named have none.

        Only changes by `LOAD_STEP` or more are taken, so that noise re-ranks nobody.
        """
        column = self.columns["cpu"]
        for name, row in self.rows.items():
            room = self.allocatable[row, column]
            asked = self.used[row, column] / room if room else 1.0
            idle = 1.0 - min(max(loads.get(name, 0.0) - asked, 0.0), MAX_BACKGROUND)
            before = self.background_free[row]
            if abs(idle - before) >= MIN_LOAD_CHANGE or idle == 1.0 != before:
                self.background_free[row] = idle
                self.usage.record(row)

    def drop_node(self, name: str) -> int | None:
        """Forget a node. What was held on it must have been released before; returns its row."""
        row = self.rows.pop(name, None)
        if row is None:
            return None
        del self._nodes[name]
        self.names[row] = ""
        self.present[row] = False
        self._clear_row(row)
        self.background_free[row] = 1.0
        if self.devices is not None:
            self.devices.clear_row(row)
        self.labels.clear_row(row)
        self._free_rows.append(row)
        self.shape.record(row)
        return row

    # -- what is held --------------------------------------------------------------------------

    def hold(self, row: int, task: Task) -> None:
        """A pod takes room on a node. Room is not checked: the API server is the truth, even over-full."""
        for column, amount in self._held[task.spec, task.held]:
            column[row] += amount
        if task.spec.long_running:
            self.service_changes += 1
        self.usage.record(row)
        if self.devices is not None:
            self.devices.hold(row, task)
        for port in task.spec.host_ports:
            holders = self.port_rows[port]
            holders[row] = holders.get(row, 0) + 1
        for guard in task.anti_affinity_terms:
            self.anti_affinity.hold(guard, row)
            self._record_domain(row, guard.topology_key)

    def release(self, row: int, task: Task) -> None:
        """A pod, given as it was when it took its room, gives it back."""
        for column, amount in self._held[task.spec, task.held]:
            column[row] -= amount
        if task.spec.long_running:
            self.service_changes += 1
        self.usage.record(row)
        if self.devices is not None:
            self.devices.release(row, task.uid)
        for port in task.spec.host_ports:
            holders = self.port_rows[port]
            holders[row] -= 1
            if not holders[row]:
                del holders[row]
            if not holders:
                del self.port_rows[port]
        for guard in task.anti_affinity_terms:
            self.anti_affinity.release(guard, row)
            self._record_domain(row, guard.topology_key)

    def lengthen(self, rows: int) -> None:
        """Make room for so many rows."""
        super().grow_rows(rows)
        more = rows - self.capacity
        self.background_free = np.pad(self.background_free, (0, more), constant_values=1.0)
        self.present, self.cordoned = np.pad(self.present, (0, more)), np.pad(self.cordoned, (0, more))
        self.taint_set = np.pad(self.taint_set, (0, more))
        self.labels.grow_rows(rows)
        if self.devices is not None:
            self.devices.grow_rows(rows)

    # -- within --------------------------------------------------------------------------------

    def _record_domain(self, row: int, topology_key: str) -> None:
        """A guard reaches over its whole domain: every row of it has changed."""
        column = self.labels.column(topology_key)
        if column[row] != ABSENT:
            for each in np.flatnonzero(column == column[row]).tolist():
                self.usage.record(each)

    def _set_devices(self, row: int, before: Node | None, node: Node) -> None:
        had = 0 if before is None else amount_of(before.allocatable, DEVICE_MILLI)
        has = amount_of(node.allocatable, DEVICE_MILLI)
        if had != has:
            if self.devices is None:
                self.devices = Devices(self.capacity)
            self.devices.set_devices(row, had, has)

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
                self.lengthen(2 * row)
        self.rows[name] = row
        return row

    def _intern_taints(self, taints: tuple[Taint, ...]) -> int:
        index = self._taint_index.setdefault(taints, len(self.taint_sets))
        if index == len(self.taint_sets):
            self.taint_sets.append(taints)
        return index
