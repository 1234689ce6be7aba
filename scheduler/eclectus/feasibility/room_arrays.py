"""The room that nodes have for pods with the same requests, in arrays that follow the change logs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only, scalars
from eclectus.feasibility.room import Room
from eclectus.model.objects import Amounts

MAX_SCALAR_ROWS = 8  # changed rows up to which plain numbers cost less than arrays


class RoomArrays:
    """What `Room` says of every node. Classes share it, and each may refresh it.

    Arrays over nodes, shape [capacity], read-only; replaced when the cluster's are:
    `overflow`: how much room is missing; inf where there has been no node.
    `empty_capacity`: tasks that fit on the empty node.
    `service_slots`: tasks that fit beside the node's services. Services never end, so a task does not wait
    for them: they make the node smaller.
    """

    def __init__(self, cluster: Cluster, requests: Amounts) -> None:
        self._cluster, self._requests = cluster, requests
        self.waitable_changes = 0  # grows when the services of a node leave the first slot, or take the last
        self._shape_cursor = self._usage_cursor = self.service_cursor = -1
        self._make_arrays()
        self._evaluate_all()

    def _make_arrays(self) -> None:
        rows = self._cluster.capacity
        self._overflow = np.full(rows, np.inf)
        self._empty_capacity, self._service_slots = np.zeros(rows), np.zeros(rows)
        self.overflow, self.empty_capacity = read_only(self._overflow), read_only(self._empty_capacity)
        self.service_slots = read_only(self._service_slots)
        self._overflow_at, self._service_slots_at = scalars(self._overflow), scalars(self._service_slots)

    def refresh(self) -> None:
        """Evaluate the rows that have changed since the last refresh."""
        cluster = self._cluster
        shape_head, usage_head = cluster.shape.head, cluster.usage.head
        if shape_head == self._shape_cursor and usage_head == self._usage_cursor:
            return
        used = cluster.usage.since(self._usage_cursor)
        if shape_head != self._shape_cursor or used is None or len(used) > MAX_SCALAR_ROWS:
            self._refresh_arrays(used)
        else:
            self.refresh_rows(self._usage_cursor, used)

    def refresh_rows(self, cursor: int, used: list[int]) -> None:
        """The same where no shape has changed and these few rows are those whose usage has since `cursor`."""
        if cursor != self._usage_cursor:
            self.refresh()
            return
        self._usage_cursor = self._cluster.usage.head
        overflow, overflow_of = self._overflow_at, self.room.overflow_at
        for row in used:
            overflow[row] = overflow_of(row)
        if self.service_cursor != self._cluster.service_changes:
            self.service_cursor = self._cluster.service_changes
            self._update_slots(used)

    def _update_slots(self, rows: Sequence[int]) -> None:
        for row in rows:
            slots = self.room.service_slots_at(row)
            if (slots >= 1) != (self._service_slots_at[row] >= 1):
                self.waitable_changes += 1
            self._service_slots_at[row] = slots

    def _refresh_arrays(self, used: list[int] | None) -> None:
        """The same for many changes; `used` are the rows whose usage has changed, None if too many."""
        reshaped = self._cluster.shape.since(self._shape_cursor)
        if reshaped is None or used is None:
            if len(self._overflow) != self._cluster.capacity:
                self._make_arrays()
            self._evaluate_all()
            return
        services_changed = self.service_cursor != self._cluster.service_changes
        self._move_cursors()
        rows = np.array(sorted({*reshaped, *used}), dtype=np.intp)
        if reshaped:
            shaped = np.array(reshaped, dtype=np.intp)
            self._empty_capacity[shaped] = self.room.empty_capacity(shaped)
        if reshaped or services_changed:
            self._service_slots[rows] = self.room.service_slots(rows)
            self.waitable_changes += 1
        self._overflow[rows] = self.room.overflow(rows)

    def _evaluate_all(self) -> None:
        self._move_cursors()
        self.room = Room(self._cluster, self._requests)  # the cluster may have replaced its arrays
        rows = slice(len(self._cluster.names))
        self._overflow[rows] = self.room.overflow(rows)
        self._empty_capacity[rows] = self.room.empty_capacity(rows)
        self._service_slots[rows] = self.room.service_slots(rows)
        self.waitable_changes += 1

    def _move_cursors(self) -> None:
        """Everything up to now is about to be evaluated."""
        cluster = self._cluster
        self._shape_cursor, self._usage_cursor = cluster.shape.head, cluster.usage.head
        self.service_cursor = cluster.service_changes
