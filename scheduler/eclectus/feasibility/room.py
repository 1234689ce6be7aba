"""The room that nodes have for tasks of one class: all formulas of NodeResourcesFit, in one place.

A task of the class demands `demand[r]` of every resource r that its pod requests, and one of `pods`. Of
node i:

    overflow[i]       = max over r of (used[i,r] + tentative[i,r] + demand[r] - allocatable[i,r]) / demand[r]
    service_slots[i]  = floor of min over r of (allocatable[i,r] - long_running[i,r]) / demand[r], at least 0
    empty_capacity[i] = floor of min over r of allocatable[i,r] / demand[r]

A task fits if and only if overflow <= 0; otherwise overflow is the number of tasks of this class that must
end on the node before one more fits. With k equal slots and q tasks it is q + 1 - k. Resources that no node
offers have no columns, however many a pod requests: all together count as one, of which every node has 0.

Each formula has one form for many rows (numpy) and, where single rows are evaluated often, one for a single
row (`..._at`, Python floats, about twenty times cheaper than an array of one). Both do the same floating
point operations in the same order, so their results are equal to the last bit. The array forms go resource
by resource: reducing a table [rows, resources] along its short side takes numpy three times as long. They
take each column before its rows, which is four times as fast as both at once; for all rows a slice is six
times as fast again as an array of their indices. They change one array in place, because on 15,000 nodes
each new one takes longer than the arithmetic. For pods with the same requests the arrays are kept, and
follow the change logs.
"""

from collections.abc import Iterator
from functools import reduce
from math import floor, inf

import numpy as np

from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only, scalars
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.rules.table import USAGE_RULES
from eclectus.feasibility.static_rules import ShapeValues
from eclectus.feasibility.topology.mask import TopologyMask
from eclectus.maths.numbers import Floats
from eclectus.model.objects import Amounts, Spec

Column = tuple[Floats, Floats, Floats, Floats, float]
"""Of a resource what nodes have, what is used, tentative and long-running of it, by row; and the demand."""


class Room:
    """The room for tasks with these requests.

    Valid until the cluster replaces its arrays, which the change log `shape` reports to every reader as
    "start over"; then make a new one.
    """

    __slots__ = ("_cluster", "_columns", "_names", "_not_offered", "_resources")

    def __init__(self, cluster: Cluster, requests: Amounts) -> None:
        parts = cluster.parts(requests)
        names = tuple(cluster.columns)
        self._cluster = cluster
        self._not_offered = [name for name, _ in cluster.not_offered(requests)]
        self._names = [names[column] for column, _ in parts]  # of the resources that nodes offer
        self._columns: list[Column] = [(*cluster.layers[:, :, column], demand) for column, demand in parts]
        if self._not_offered:
            nothing = read_only(np.zeros(cluster.capacity))
            self._columns.append((nothing, nothing, nothing, nothing, 1.0))
        self._resources = [  # the same, one number at a time
            (scalars(allocatable), scalars(used), scalars(tentative), scalars(long_running), demand)
            for allocatable, used, tentative, long_running, demand in self._columns
        ]

    def overflow(self, rows: AnyRows) -> Floats:
        """The overflow of each of the rows, shape [len(rows)]."""
        return _reduced(np.maximum, (self._overflow_of(column, rows) for column in self._columns))

    @staticmethod
    def _overflow_of(column: Column, rows: AnyRows) -> Floats:
        allocatable, used, tentative, _, demand = column
        found: Floats = used[rows] + tentative[rows]
        found += demand
        found -= allocatable[rows]
        found /= demand
        return found

    def overflow_at(self, row: int) -> float:
        """The overflow of one row."""
        overflow = -inf
        for allocatable, used, tentative, _, demand in self._resources:
            of_resource = (used[row] + tentative[row] + demand - allocatable[row]) / demand
            if of_resource > overflow:
                overflow = of_resource
        return overflow

    def shortages(self, rows: Rows) -> Iterator[tuple[str, Mask]]:
        """Each resource that a task demands, and which of the rows have too little of it left."""
        for name, (allocatable, used, tentative, _, demand) in zip(self._names, self._columns, strict=False):
            # All rows first, because they are mostly asked for, and a slice is read so much faster.
            yield name, (used + tentative + demand > allocatable)[rows]
        everywhere = np.ones(len(rows), dtype=bool)
        yield from ((name, everywhere) for name in self._not_offered)

    def fits_beside_held(self, row: int) -> bool:
        """Whether one more task fits beside the pods on the node; tentative placements do not count."""
        for allocatable, used, _, _, demand in self._resources:
            if used[row] + demand > allocatable[row]:
                return False
        return True

    def fit_beside_held(self, rows: Rows) -> Mask:
        """The same for each of the rows, shape [len(rows)]."""
        fits: Mask = reduce(
            np.logical_and,
            (used[rows] + demand <= allocatable[rows] for allocatable, used, _, _, demand in self._columns),
        )
        return fits

    def service_slots(self, rows: AnyRows) -> Floats:
        """Tasks that fit beside the services of each of the rows, shape [len(rows)]."""
        free = ((each[0][rows] - each[3][rows], each[4]) for each in self._columns)
        slots = _reduced(np.minimum, (np.divide(left, demand, out=left) for left, demand in free))
        np.floor(slots, out=slots)
        return np.maximum(slots, 0.0, out=slots)

    def service_slots_at(self, row: int) -> int:
        """Tasks that fit beside the services of one row."""
        least = min(
            (allocatable[row] - long_running[row]) / demand
            for allocatable, _, _, long_running, demand in self._resources
        )
        return max(floor(least), 0)

    def empty_capacity(self, rows: AnyRows) -> Floats:
        """Tasks that fit on each of the rows when it is empty, shape [len(rows)]."""
        tasks = (allocatable[rows] / demand for allocatable, _, _, _, demand in self._columns)
        least = _reduced(np.minimum, tasks)
        return np.floor(least, out=least)


def _reduced(function: np.ufunc, arrays: Iterator[Floats]) -> Floats:
    """The first array, changed by `function` with each of the others."""
    found = next(arrays)
    for each in arrays:
        function(found, each, out=found)
    return found


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
        self._cluster = cluster
        self._requests = requests
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
            for row in used:
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


# Where pods fit that no rule tells apart and that request the same; arrays that follow the change logs.


class Fit:
    """What the rules and the room say of every node. Classes share it, and each may refresh it.

    Arrays over nodes, shape [capacity], read-only; replaced when the cluster's are:
    `feasible`: every static rule holds, and the empty node is large enough.
    `fits_now`: feasible, every usage rule and every rule about other pods holds, and there is room now.
    """

    def __init__(
        self,
        cluster: Cluster,
        spec: Spec,
        room: RoomArrays,
        may_run: ShapeValues[np.bool_],
        topology: TopologyMask | None = None,
    ) -> None:
        """`topology`: the rules about other pods; None where there is none."""
        self._cluster = cluster
        self._spec = spec
        self.room = room
        self._may_run = may_run
        self.topology = topology
        self._flip_cursor = -1
        self.usage_rules = tuple(rule for rule in USAGE_RULES if rule.applies(spec))
        self._shape_cursor = self.usage_cursor = self._waitable_changes = -1
        self._waitable_rows: Rows | None = None
        self.feasible_count = self.fits_now_count = 0
        self._make_arrays()
        self._evaluate_all()

    def _make_arrays(self) -> None:
        rows = self._cluster.capacity
        self._feasible, self._fits_now = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool)
        self.feasible, self.fits_now = read_only(self._feasible), read_only(self._fits_now)
        self._feasible_at, self._fits_now_at = scalars(self.feasible), scalars(self._fits_now)

    @property
    def waitable_rows(self) -> Rows:
        """Rows that can run such a pod, now or after others have ended, ascending.

        Not those that a limit of a pool forbids now: the pod goes to others.
        """
        if self._waitable_rows is None or self._waitable_changes != self.room.waitable_changes:
            self._waitable_rows = read_only(np.flatnonzero(self.feasible & (self.room.service_slots >= 1)))
            self._waitable_changes = self.room.waitable_changes
        if self.topology is None or not self.topology.has_quotas:
            return self._waitable_rows
        return read_only(self._waitable_rows[self.topology.within_quotas(self._waitable_rows)])

    def waitable(self, rows: Rows) -> Mask:
        """Which of the rows are among `waitable_rows`, shape [len(rows)]."""
        found: Mask = self.feasible[rows] & (self.room.service_slots[rows] >= 1)
        if self.topology is not None and self.topology.has_quotas:
            found &= self.topology.within_quotas(rows)
        return found

    def fits_beside_held(self, row: int) -> bool:
        """Whether one more fits beside the pods on the node, tentative ones aside; shapes must be current."""
        if not self._feasible_at[row] or not self.room.room.fits_beside_held(row):
            return False
        if self.topology is not None and not self.topology.allows(row):
            return False
        return not self.usage_rules or bool(self._usage_rules_hold(np.array([row]))[0])

    def fit_beside_held(self, rows: Rows) -> Mask:
        """The same for each of the rows, shape [len(rows)]."""
        fits: Mask = self.feasible[rows] & self.room.room.fit_beside_held(rows)
        if self.topology is not None:
            self.topology.refresh()
            fits &= self.topology.allowed[rows]
        if self.usage_rules:
            fits[fits] = self._usage_rules_hold(rows[fits])
        return fits

    def refresh(self) -> None:
        """Evaluate the rows that have changed since the last refresh."""
        shape, usage = self._cluster.shape, self._cluster.usage
        if shape.head != self._shape_cursor or usage.head != self.usage_cursor:
            self._refresh_arrays(usage.since(self.usage_cursor), self._flipped())

    def refresh_usage(self) -> None:
        """The same where usage has changed and no shape has."""
        used, flipped = self._cluster.usage.since(self.usage_cursor), self._flipped()
        if used is None or flipped is None or len(used) > MAX_SCALAR_ROWS or self.usage_rules:
            self._refresh_arrays(used, flipped)
            return
        self.room.refresh_rows(self.usage_cursor, used)
        self.usage_cursor = self._cluster.usage.head
        self._update_each(used)
        for rows in flipped:
            if len(rows) <= MAX_SCALAR_ROWS:
                self._update_each(rows.tolist())
            else:
                self._update_fits_now(rows)

    def _update_each(self, rows: list[int]) -> None:
        feasible, fits_now, overflow = self._feasible_at, self._fits_now_at, self._overflow_at
        topology = self.topology
        for row in rows:
            fits = overflow[row] <= 0 and feasible[row] and (topology is None or topology.allows(row))
            if fits != fits_now[row]:
                fits_now[row] = fits
                self.fits_now_count += 1 if fits else -1

    def _flipped(self) -> list[Rows] | None:
        """Arrays of the rows that rules about other pods may see otherwise; None if all may be."""
        if self.topology is None:
            return []
        self.topology.refresh()
        flips = self.topology.flips
        found = flips.entries_since(self._flip_cursor)
        self._flip_cursor = flips.head
        return found

    def _refresh_arrays(self, used: list[int] | None, flipped: list[Rows] | None) -> None:
        """The same for many changes; `used` are the rows whose usage has changed, None if too many."""
        reshaped = self._cluster.shape.since(self._shape_cursor)
        if reshaped is None or used is None or flipped is None:
            if len(self._feasible) != self._cluster.capacity:
                self._make_arrays()
            self._evaluate_all()
            return
        self.room.refresh()
        self._move_cursors()
        if reshaped:
            rows = np.array(reshaped, dtype=np.intp)
            feasible = self._may_run.refresh()[rows] & (self.room.empty_capacity[rows] >= 1)
            self.feasible_count += int(np.count_nonzero(feasible) - np.count_nonzero(self.feasible[rows]))
            self._feasible[rows], self._waitable_rows = feasible, None
        self._update_fits_now(np.array(sorted({*reshaped, *used}), dtype=np.intp))
        for rows in flipped:
            self._update_fits_now(rows)

    def _evaluate_all(self) -> None:
        self.room.refresh()
        self._overflow_at = scalars(self.room.overflow)
        self._move_cursors()
        np.logical_and(self._may_run.refresh(), self.room.empty_capacity >= 1, out=self._feasible)
        np.logical_and(self._feasible, self.room.overflow <= 0, out=self._fits_now)
        if self.topology is not None:
            self._flipped()
            self._fits_now &= self.topology.allowed
        if self.usage_rules:
            rows = np.flatnonzero(self._fits_now)
            self._fits_now[rows] = self._usage_rules_hold(rows)
        self.feasible_count = int(np.count_nonzero(self._feasible))
        self.fits_now_count = int(np.count_nonzero(self._fits_now))
        self._waitable_rows = None

    def _move_cursors(self) -> None:
        """Everything up to now is about to be evaluated."""
        self._shape_cursor, self.usage_cursor = self._cluster.shape.head, self._cluster.usage.head

    def _update_fits_now(self, rows: Rows) -> None:
        fits = self.feasible[rows] & (self.room.overflow[rows] <= 0)
        if self.topology is not None:
            fits &= self.topology.allowed[rows]
        if self.usage_rules:
            fits &= self._usage_rules_hold(rows)
        self.fits_now_count += int(np.count_nonzero(fits) - np.count_nonzero(self.fits_now[rows]))
        self._fits_now[rows] = fits

    def _usage_rules_hold(self, rows: Rows) -> Mask:
        holds = np.ones(len(rows), dtype=bool)
        for rule in self.usage_rules:
            holds &= rule.holds(self._cluster, self._spec, rows)
        return holds
