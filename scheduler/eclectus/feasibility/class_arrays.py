"""What the rules, the room and the preferences say of every node for one class, as arrays.

`TaskClass` decides when which rows are evaluated again; this module evaluates them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import Scalars, scalars
from eclectus.feasibility.preferences import preference_scores
from eclectus.feasibility.room import Floats, Room
from eclectus.feasibility.rules.rule import Mask
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


class ClassArrays:
    """One class. Arrays over nodes, shape [capacity]; written here only.

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
        self._static_rules = tuple(rule for rule in STATIC_RULES if rule.applies(spec))
        self._usage_rules = tuple(rule for rule in USAGE_RULES if rule.applies(spec))
        self._make_arrays()

    def _make_arrays(self) -> None:
        """New arrays of the cluster's present size, in which no node is feasible."""
        self._room = Room(self.cluster, self.spec.requests)  # may replace the cluster's arrays: first
        rows = self.cluster.capacity
        self.feasible: Mask = np.zeros(rows, dtype=bool)
        self.fits_now: Mask = np.zeros(rows, dtype=bool)
        self.overflow: Floats = np.full(rows, np.inf)
        self.empty_capacity: Floats = np.zeros(rows)
        self.service_slots: Floats = np.zeros(rows)
        self.preference_score: Floats = np.ones(rows)
        self.scalars = NodeScalars(
            scalars(self.feasible),
            scalars(self.fits_now),
            scalars(self.overflow),
            scalars(self.service_slots),
            scalars(self.preference_score),
            scalars(self.cluster.background_free),
        )
        self.fits_now_count = self.feasible_count = 0
        self._waitable_rows: Rows | None = None

    # -- many rows -----------------------------------------------------------------------------

    def _update_shape(self, rows: Rows) -> None:
        """Evaluate again what depends on a node's allocatable amounts, labels and taints."""
        holds = self.cluster.present[rows]
        for rule in self._static_rules:
            holds &= rule.holds(self.cluster, self.spec, rows)
        self.empty_capacity[rows] = self._room.empty_capacity(rows)
        holds &= self.empty_capacity[rows] >= 1
        self.feasible_count += int(np.count_nonzero(holds) - np.count_nonzero(self.feasible[rows]))
        self.feasible[rows] = holds
        self._waitable_rows = None
        self.preference_score[rows] = preference_scores(self.cluster, self.spec, rows)

    def _update_usage(self, rows: Rows) -> None:
        """Evaluate again what depends on the pods of a node, service slots aside."""
        overflow = self._room.overflow(rows)
        self.overflow[rows] = overflow
        fits = self.feasible[rows] & (overflow <= 0)
        for rule in self._usage_rules:
            fits &= rule.holds(self.cluster, self.spec, rows)
        self.fits_now_count += int(np.count_nonzero(fits) - np.count_nonzero(self.fits_now[rows]))
        self.fits_now[rows] = fits

    def _update_service_slots(self, rows: Rows) -> None:
        """Evaluate the service slots again, which change with shape and with services."""
        slots = self._room.service_slots(rows)
        if self._waitable_rows is not None and np.any((slots >= 1) != (self.service_slots[rows] >= 1)):
            self._waitable_rows = None
        self.service_slots[rows] = slots

    # -- few rows ------------------------------------------------------------------------------

    def _update_usage_at(self, rows: Iterable[int]) -> None:
        """The same as `_update_usage`, for few rows of a class without usage rules."""
        arrays, overflow_at = self.scalars, self._room.overflow_at
        for row in rows:
            arrays.overflow[row] = overflow = overflow_at(row)
            fits = overflow <= 0 and arrays.feasible[row]
            if fits != arrays.fits_now[row]:
                arrays.fits_now[row] = fits
                self.fits_now_count += 1 if fits else -1

    def _update_service_slots_at(self, rows: Iterable[int]) -> None:
        """The same as `_update_service_slots`, for few rows."""
        arrays = self.scalars
        for row in rows:
            slots = self._room.service_slots_at(row)
            if (slots >= 1) != (arrays.service_slots[row] >= 1):
                self._waitable_rows = None
            arrays.service_slots[row] = slots
