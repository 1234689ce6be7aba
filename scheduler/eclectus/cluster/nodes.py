"""The cluster as arrays: N rows of nodes, changed in place, row by row; amounts are in resources.py.

Names map to rows. The row of a removed node is used again for the next new one.

Three change logs tell which rows have changed: `shape` (allocatable, labels, taints, unschedulable), `usage`
(what is held or tentative on a node, and its background load) and `held` (which pods are there: a part of
`usage`, most of which may be tentative).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Self

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.cluster.alike_pods import AlikePodGroups, HeldTerms
from eclectus.cluster.devices import Devices, device_milli
from eclectus.cluster.host_ports import HostPorts
from eclectus.cluster.labels import ABSENT, NONE, LabelColumns, NodeImages, TaintSets
from eclectus.cluster.node_volumes import NodeVolumes
from eclectus.cluster.resources import ALLOCATABLE, ResourceTable
from eclectus.cluster.scalars import read_only
from eclectus.model.objects import Node, Taint, Task

MIN_LOAD_CHANGE = 0.05  # of a node: smaller changes of its background load are ignored
MAX_BACKGROUND = 0.95  # of a node: however busy it is, some of it is left for tasks
OTHER = "other"  # of groups by a label: nodes whose value has no group of its own
UNLABELLED = "none"


class Cluster(ResourceTable):
    """All nodes and all that pods hold on them.

    Read-only arrays beside those of `ResourceTable`: `background_free` [rows], the share of the node that
    load beyond the requests of its pods leaves free, 0..1; `present`, `cordoned` [rows]; `taint_set` [rows],
    an index into `taint_sets`. They are replaced when rows are added.
    """

    def __init__(self, rows: int = 64) -> None:
        super().__init__(rows)
        self._rows: dict[str, int] = {}
        self._names: list[str] = []
        self._taint_sets = TaintSets()
        self.rows: Mapping[str, int] = self._rows  # node name -> row
        self.names: Sequence[str] = self._names  # row -> node name, "" where there is no node
        self.taint_sets: Sequence[tuple[Taint, ...]] = self._taint_sets.sets
        self.labels = LabelColumns(rows)
        self.host_ports = HostPorts()
        self.images = NodeImages()
        self.anti_affinity = HeldTerms()
        self.preferences = HeldTerms()
        self.pods = AlikePodGroups(self.anti_affinity, self.preferences)
        self.volumes = NodeVolumes(self._rows, self.usage, self.shape, rows)
        self.service_changes = 0  # grows when a service takes or gives back room; written here only
        self.devices: Devices | None = None  # None until a node has any
        self._free_rows: list[int] = []
        self._nodes: dict[str, Node] = {}
        self._background_free, self._present = np.ones(rows), np.zeros(rows, dtype=bool)
        self._cordoned, self._taint_set = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=np.intp)
        self._show_row_arrays()

    def __len__(self) -> int:
        return len(self._rows)

    def classes_within(self, comparisons: int, most: int) -> int:
        """How many classes can be compared with all nodes for so many comparisons: 1 to `most`."""
        return min(most, max(1, comparisons // max(1, len(self._rows))))

    def copy(self) -> Cluster:
        """The same nodes and pods in the same rows, which change by themselves; O(nodes x labels + groups).

        What is known of claims and volumes is shared: nothing that happens to nodes and pods changes it.
        """
        return copy(self).detach()

    def detach(self) -> Self:
        """Itself, a shallow copy; from now on it shares nothing that changes with the original."""
        super().detach()
        self._rows, self._names, self._nodes = dict(self._rows), list(self._names), dict(self._nodes)
        self.rows, self.names = self._rows, self._names
        self._free_rows = list(self._free_rows)
        self._taint_sets = copy(self._taint_sets).detach()
        self.taint_sets = self._taint_sets.sets
        self.labels, self.images = copy(self.labels).detach(), copy(self.images).detach()
        self.host_ports = copy(self.host_ports).detach()
        self.volumes = copy(self.volumes).detach(self._rows, self.usage, self.shape)
        self.devices = None if self.devices is None else copy(self.devices).detach()
        self.anti_affinity, self.preferences = HeldTerms(), HeldTerms()
        self.pods = self.pods.copy(self.anti_affinity, self.preferences)
        self._background_free, self._present = self._background_free.copy(), self._present.copy()
        self._cordoned, self._taint_set = self._cordoned.copy(), self._taint_set.copy()
        self._show_row_arrays()
        return self

    @property
    def capacity(self) -> int:
        """Rows in the arrays, used or not: the length of every array over nodes."""
        return len(self._present)

    def node(self, name: str) -> Node | None:
        """The node as last seen."""
        return self._nodes.get(name)

    def set_node(self, node: Node) -> int:
        """Add or update a node and return its row. An equal node changes nothing."""
        before = self._nodes.get(node.name)
        if before == node:
            return self._rows[node.name]
        self._nodes[node.name] = node
        row = self._row_for(node.name)
        self.images.set(row, () if before is None else before.images, node.images)
        if before is not None and replace(before, images=node.images) == node:
            return row  # no rule reads images
        vector = self.offered_by(node.name, node.allocatable)  # may replace the arrays: before the write
        self._layers[ALLOCATABLE, row] = vector
        self._cordoned[row] = node.unschedulable
        if before is not None:
            self._taint_sets.remove(int(self._taint_set[row]))
        self._taint_set[row] = self._taint_sets.add(node.taints)
        self.labels.set_labels(row, node.labels)
        self._set_devices(row, before, node)
        if before is None:
            self.volumes.open_row(row, node.name)
        self._present[row] = True
        self.shape.record(row)
        return row

    def set_loads(self, loads: Mapping[str, float]) -> None:
        """Measured load, node -> share of its cpu in use; what exceeds its pods' requests is background load.

        A node that is not named has none. Changes smaller than `MIN_LOAD_CHANGE` are ignored, so that noise
        does not rank nodes anew.
        """
        column = self._columns["cpu"]
        for name, row in self._rows.items():
            allocatable = self.allocatable[row, column]
            requested = self.used[row, column] / allocatable if allocatable else 1.0
            free = 1.0 - min(max(loads.get(name, 0.0) - requested, 0.0), MAX_BACKGROUND)
            before = self._background_free[row]
            if abs(free - before) >= MIN_LOAD_CHANGE or free == 1.0 != before:
                self._background_free[row] = free
                self.usage.record(row)

    def drop_node(self, name: str) -> int | None:
        """Remove a node and return its row, None if unknown. Its pods must have been released before."""
        row = self._rows.pop(name, None)
        if row is None:
            return None
        self.images.set(row, self._nodes.pop(name).images, ())
        self._names[row] = ""
        self._taint_sets.remove(int(self._taint_set[row]))
        self._taint_set[row] = NONE
        self._present[row] = False
        self._clear_row(row)
        self._background_free[row] = 1.0
        if self.devices is not None:
            self.devices.clear_row(row)
        self.labels.clear_row(row)
        self.volumes.close_row(row, name)
        self._free_rows.append(row)
        self.shape.record(row)
        return row

    def hold(self, row: int, task: Task, *, is_nominated: bool = False) -> None:
        """A pod takes room on a node. Room is not checked: what is bound counts, even if too much."""
        for column, amount in self._held[task.spec, task.held]:
            column[row] += amount
        if task.spec.long_running:
            self.service_changes += 1
        self.usage.record(row)
        self.held.record(row)
        if self.devices is not None:
            self.devices.hold(row, task)
        for port in task.spec.host_ports:
            self.host_ports.hold(port, row)
        if task.claims:
            self.volumes.hold(row, task)
        self.pods.hold(row, task, is_nominated=is_nominated)

    def release(self, row: int, task: Task, *, is_nominated: bool = False) -> None:
        """A pod gives its room back; the arguments are the same as in `hold`."""
        for column, amount in self._held[task.spec, task.held]:
            column[row] -= amount
        if task.spec.long_running:
            self.service_changes += 1
        self.usage.record(row)
        self.held.record(row)
        if self.devices is not None:
            self.devices.release(task.uid)
        for port in task.spec.host_ports:
            self.host_ports.release(port, row)
        if task.claims:
            self.volumes.release(row, task)
        self.pods.release(row, task, is_nominated=is_nominated)

    def grow_rows(self, rows: int) -> None:
        """There are `rows` rows now, the new ones without a node."""
        more = (0, rows - self.capacity)
        super().grow_rows(rows)
        self._background_free = np.pad(self._background_free, more, constant_values=1.0)
        self._present, self._cordoned = np.pad(self._present, more), np.pad(self._cordoned, more)
        self._taint_set = np.pad(self._taint_set, more)
        self._show_row_arrays()
        self.labels.grow_rows(rows)
        self.volumes.grow_rows(rows)
        if self.devices is not None:
            self.devices.grow_rows(rows)

    def _show_row_arrays(self) -> None:
        self.background_free, self.present = read_only(self._background_free), read_only(self._present)
        self.cordoned, self.taint_set = read_only(self._cordoned), read_only(self._taint_set)

    def _set_devices(self, row: int, before: Node | None, node: Node) -> None:
        had = () if before is None else before.allocatable
        if self.devices is None and device_milli(node.allocatable):
            self.devices = Devices(self.capacity)
        if self.devices is not None and had != node.allocatable:
            self.devices.set_devices(row, had, node.allocatable)

    def _row_for(self, name: str) -> int:
        row = self._rows.get(name)
        if row is not None:
            return row
        if self._free_rows:
            row = self._free_rows.pop()
            self._names[row] = name
        else:
            row = len(self._names)
            self._names.append(name)
            if row == self.capacity:
                self.grow_rows(2 * row)
        self._rows[name] = row
        return row

    def groups_by(self, label: str, max_groups: int) -> tuple[list[str], NDArray[np.intp]]:
        """Nodes by the value of a label: the most common values by name, the rest together.

        The names of at most `max_groups` groups, and the group of each row, -1 where there is no node.
        """
        column, present = self.labels.column(label), self.present
        value_of = {code: value for value, code in self.labels.codes(label).items()} | {ABSENT: UNLABELLED}
        nodes = Counter(column[present].tolist())
        ranked = sorted(nodes, key=lambda code: (-nodes[code], value_of[code]))
        own_group = ranked if len(ranked) <= max_groups else ranked[: max_groups - 1]
        names = [value_of[code] for code in own_group]
        group_of = np.full(len(value_of), len(own_group), dtype=np.intp)
        group_of[own_group] = np.arange(len(own_group))  # ABSENT, being -1, is the last
        if len(own_group) < len(ranked):
            names.append(OTHER)
        return names, np.where(present, group_of[column], -1)
