"""Where pods fit that no rule tells apart and that request the same; arrays that follow the change logs."""

from __future__ import annotations

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only, scalars
from eclectus.feasibility.room import MAX_SCALAR_ROWS, RoomArrays
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.rules.table import USAGE_RULES
from eclectus.feasibility.static_rules import ShapeValues
from eclectus.feasibility.topology.mask import TopologyMask
from eclectus.model.objects import Spec


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
        self._cluster, self._spec, self.room, self._may_run = cluster, spec, room, may_run
        self.topology, self._flip_cursor = topology, -1
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

    # -- reading -------------------------------------------------------------------------------

    @property
    def waitable_rows(self) -> Rows:
        """Rows that can run such a pod, now or after others have ended, ascending."""
        if self._waitable_rows is None or self._waitable_changes != self.room.waitable_changes:
            self._waitable_rows = read_only(np.flatnonzero(self.feasible & (self.room.service_slots >= 1)))
            self._waitable_changes = self.room.waitable_changes
        return self._waitable_rows

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

    # -- following the cluster -----------------------------------------------------------------

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
            self._update_feasible(np.array(reshaped, dtype=np.intp))
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

    def _update_feasible(self, rows: Rows) -> None:
        feasible = self._may_run.refresh()[rows] & (self.room.empty_capacity[rows] >= 1)
        self.feasible_count += int(np.count_nonzero(feasible) - np.count_nonzero(self.feasible[rows]))
        self._feasible[rows] = feasible
        self._waitable_rows = None

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
