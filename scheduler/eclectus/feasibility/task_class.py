"""Classes of tasks that no rule can tell apart, each with what the rules say of every node.

A class follows the cluster's change logs. A pod that is bound costs each class that is used again one
row; a class that nobody uses costs nothing.
"""

from __future__ import annotations

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.class_arrays import ClassArrays
from eclectus.feasibility.room import Floats
from eclectus.feasibility.rules.rule import Rule
from eclectus.model.objects import Spec

MAX_SCALAR_ROWS = 8  # changed rows up to which plain numbers cost less than arrays


class TaskClass(ClassArrays):
    """One class, up to date after `refresh`; its arrays are described at `ClassArrays`."""

    def __init__(self, cluster: Cluster, spec: Spec, workload: str) -> None:
        super().__init__(cluster, spec)
        self.workload = workload
        self.last_used = 0  # number of the scheduling cycle; written by ClassCache only
        self._shape_cursor = self._usage_cursor = self._service_cursor = 0
        self._evaluate_all()

    # -- reading -------------------------------------------------------------------------------

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that apply to this class, in kube-scheduler's order; room is none of them."""
        return self._static_rules + self._usage_rules

    @property
    def usage_rules(self) -> tuple[Rule, ...]:
        """Those of them that depend on the pods of a node."""
        return self._usage_rules

    @property
    def background_free(self) -> Floats:
        """The share of each node that background load leaves free, 0..1."""
        return self.cluster.background_free

    @property
    def fits_now_rows(self) -> Rows:
        """Rows that can run a task of the class now, ascending."""
        return np.flatnonzero(self.fits_now)

    @property
    def waitable_rows(self) -> Rows:
        """Rows that can run a task of the class, now or after other tasks have ended, ascending."""
        if self._waitable_rows is None:
            self._waitable_rows = np.flatnonzero(self.feasible & (self.service_slots >= 1))
        return self._waitable_rows

    def may_wait(self, row: int) -> bool:
        """Whether waiting for this node helps: it is feasible, and its services leave at least one slot.

        May be called without `refresh`: the answer changes with shape and services only.
        """
        cluster = self.cluster
        if self._shape_cursor != cluster.shape.head or self._service_cursor != cluster.service_changes:
            self.refresh()
        return self.scalars.feasible[row] and self.scalars.service_slots[row] >= 1

    def fits_beside_held(self, row: int) -> bool:
        """Whether one more task fits beside the pods on the node; tentative placements do not count.

        May be called without `refresh`: the room is computed from the cluster.
        """
        if self._shape_cursor != self.cluster.shape.head:
            self.refresh()
        if not self.scalars.feasible[row] or not self._room.fits_beside_held(row):
            return False
        return not self._usage_rules or self._usage_rules_hold(row)

    def _usage_rules_hold(self, row: int) -> bool:
        rows = np.array([row])
        return all(bool(rule.holds(self.cluster, self.spec, rows)[0]) for rule in self._usage_rules)

    # -- following the cluster -----------------------------------------------------------------

    def refresh(self) -> None:
        """Evaluate the rows that have changed since the last refresh."""
        cluster = self.cluster
        shape_head, usage_head = cluster.shape.head, cluster.usage.head
        if shape_head == self._shape_cursor and usage_head == self._usage_cursor:
            return
        used = cluster.usage.since(self._usage_cursor)
        if (
            shape_head != self._shape_cursor
            or used is None
            or len(used) > MAX_SCALAR_ROWS
            or self._usage_rules
        ):
            self._refresh_arrays(used)
            return
        self._usage_cursor = usage_head
        self._update_usage_at(used)
        if self._service_cursor != cluster.service_changes:
            self._service_cursor = cluster.service_changes
            self._update_service_slots_at(used)

    def _refresh_arrays(self, used: list[int] | None) -> None:
        """The same for many changes; `used` are the rows whose usage has changed, None if too many."""
        reshaped = self.cluster.shape.since(self._shape_cursor)
        if reshaped is None or used is None:
            self._make_arrays()
            self._evaluate_all()
            return
        services_changed = self._service_cursor != self.cluster.service_changes
        self._move_cursors()
        rows = np.array(sorted({*reshaped, *used}), dtype=np.intp)
        if reshaped:
            self._update_shape(np.array(reshaped, dtype=np.intp))
        if reshaped or services_changed:
            self._update_service_slots(rows)
        self._update_usage(rows)

    def _evaluate_all(self) -> None:
        self._move_cursors()
        rows = np.arange(self.cluster.capacity, dtype=np.intp)
        self._update_shape(rows)
        self._update_service_slots(rows)
        self._update_usage(rows)

    def _move_cursors(self) -> None:
        """Everything up to now is about to be evaluated."""
        cluster = self.cluster
        self._shape_cursor, self._usage_cursor = cluster.shape.head, cluster.usage.head
        self._service_cursor = cluster.service_changes
