"""What the rules, the room and the preferences say of every node for one class, as arrays.

`TaskClass` decides when which rows are evaluated again; this module evaluates them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import Scalars, read_only, scalars
from eclectus.feasibility.preferences import preference_scores
from eclectus.feasibility.room import Room
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.feasibility.rules.table import STATIC_RULES, USAGE_RULES
from eclectus.model.objects import Spec


@dataclass(frozen=True, slots=True)
class NodeScalars:
    """The arrays of a class, one number at a time: `overflow[row]` is a plain float."""

    feasible: Scalars[bool]
    fits_now: Scalars[bool]
    overflow: Scalars[float]
    service_slots: Scalars[float]
    preference_score: Scalars[float]
    background_free: Scalars[float]


def static_rules_of(spec: Spec) -> tuple[Rule, ...]:
    """The static rules that apply to pods with this spec."""
    return tuple(rule for rule in STATIC_RULES if rule.applies(spec))


def rules_hold(rules: Iterable[Rule], cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    """Whether there is a node on each of the rows for which all these rules hold, shape [len(rows)]."""
    holds = cluster.present[rows]
    for rule in rules:
        holds &= rule.holds(cluster, spec, rows)
    return holds


class ClassArrays:
    """One class. Arrays over nodes, shape [capacity], read-only; replaced when the cluster's are.

    `feasible`: every static rule holds, and the empty node is large enough.
    `empty_capacity`: tasks of the class that fit on the empty node.
    `fits_now`: feasible, every usage rule holds, and there is room now.
    `overflow`: how much room is missing, see `Room`.
    `service_slots`: tasks of the class that fit beside the node's services. Services never end, so a task
    does not wait for them: they make the node smaller.
    `preference_score`: how well the pod's preferences are met, 0..1.
    `scalars`: all these but `empty_capacity`, one number at a time.
    """

    def __init__(self, cluster: Cluster, spec: Spec) -> None:
        self.cluster, self.spec = cluster, spec
        self._static_rules = static_rules_of(spec)
        self._usage_rules = tuple(rule for rule in USAGE_RULES if rule.applies(spec))
        self._make_arrays()

    def _make_arrays(self) -> None:
        """New arrays of the cluster's present size, in which no node is feasible."""
        self._room = Room(self.cluster, self.spec.requests)  # may replace the cluster's arrays: first
        rows = self.cluster.capacity
        self._feasible, self._fits_now = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool)
        self._overflow, self._empty_capacity = np.full(rows, np.inf), np.zeros(rows)
        self._service_slots, self._preference_score = np.zeros(rows), np.ones(rows)
        self._overflow_at, self._fits_now_at = scalars(self._overflow), scalars(self._fits_now)
        self._service_slots_at = scalars(self._service_slots)
        self.fits_now_count = self.feasible_count = 0
        self._waitable_rows: Rows | None = None
        self._make_views()

    def _make_views(self) -> None:
        """What others read: the same memory, which they cannot write."""
        self.feasible, self.fits_now = read_only(self._feasible), read_only(self._fits_now)
        self.overflow, self.empty_capacity = read_only(self._overflow), read_only(self._empty_capacity)
        self.service_slots = read_only(self._service_slots)
        self.preference_score = read_only(self._preference_score)
        self.scalars = NodeScalars(
            scalars(self.feasible),
            scalars(self.fits_now),
            scalars(self.overflow),
            scalars(self.service_slots),
            scalars(self.preference_score),
            scalars(self.cluster.background_free),
        )

    # -- many rows -----------------------------------------------------------------------------

    def _update_shape(self, rows: Rows) -> None:
        """Evaluate again what depends on a node's allocatable amounts, labels and taints."""
        holds = rules_hold(self._static_rules, self.cluster, self.spec, rows)
        self._empty_capacity[rows] = self._room.empty_capacity(rows)
        holds &= self.empty_capacity[rows] >= 1
        self.feasible_count += int(np.count_nonzero(holds) - np.count_nonzero(self.feasible[rows]))
        self._feasible[rows] = holds
        self._waitable_rows = None
        self._preference_score[rows] = preference_scores(self.cluster, self.spec, rows)

    def _update_usage(self, rows: Rows) -> None:
        """Evaluate again what depends on the pods of a node, service slots aside."""
        overflow = self._room.overflow(rows)
        self._overflow[rows] = overflow
        fits = self.feasible[rows] & (overflow <= 0)
        for rule in self._usage_rules:
            fits &= rule.holds(self.cluster, self.spec, rows)
        self.fits_now_count += int(np.count_nonzero(fits) - np.count_nonzero(self.fits_now[rows]))
        self._fits_now[rows] = fits

    def _update_service_slots(self, rows: Rows) -> None:
        """Evaluate the service slots again, which change with shape and with services."""
        slots = self._room.service_slots(rows)
        if self._waitable_rows is not None and np.any((slots >= 1) != (self.service_slots[rows] >= 1)):
            self._waitable_rows = None
        self._service_slots[rows] = slots

    # -- few rows ------------------------------------------------------------------------------

    def _update_usage_at(self, rows: Iterable[int]) -> None:
        """The same as `_update_usage`, for few rows of a class without usage rules."""
        for row in rows:
            overflow = self._overflow_at[row] = self._room.overflow_at(row)
            fits = overflow <= 0 and self.scalars.feasible[row]
            if fits != self._fits_now_at[row]:
                self._fits_now_at[row] = fits
                self.fits_now_count += 1 if fits else -1

    def _update_service_slots_at(self, rows: Iterable[int]) -> None:
        """The same as `_update_service_slots`, for few rows."""
        for row in rows:
            slots = self._room.service_slots_at(row)
            if (slots >= 1) != (self._service_slots_at[row] >= 1):
                self._waitable_rows = None
            self._service_slots_at[row] = slots
