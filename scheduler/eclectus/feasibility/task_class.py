"""Classes of tasks that no rule can tell apart, each with what the rules say of every node.

A class keeps its arrays up to date from the cluster's two journals: a pod that is bound costs every
class that is asked again one row, and classes that nobody asks about cost nothing.

The one number that says both whether there is room and how much is missing is the **overflow**:

    over[i] = max over the resources r the class asks for of
              (used[i, r] + meant[i, r] + demand[r] - allocatable[i, r]) / demand[r]

There is room iff over <= 0; otherwise it is the number of tasks of this class that must end on node
i before one more fits. With k equal slots and q tasks it is q + 1 - k.

Services never end, so they shrink a node instead of queueing on it: `slots` counts what is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import floor, inf

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import Scalars, scalars
from eclectus.feasibility.preferences import preference_scores
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.feasibility.rules.table import STATIC_RULES, USAGE_RULES
from eclectus.model.objects import Spec

Floats = NDArray[np.float64]

FEW = 8  # changed rows up to which plain numbers cost less than arrays


@dataclass(frozen=True, slots=True)
class NodeScalars:
    """A class's arrays once more, for who looks at single rows: `over[row]` is a plain float."""

    feasible: Scalars[bool]
    fits_now: Scalars[bool]
    overflow: Scalars[float]
    service_slots: Scalars[float]
    preference_score: Scalars[float]
    background_free: Scalars[float]


class TaskClass:
    """One class. Arrays over nodes, shape [capacity]; read them, do not write them.

    `feasible`: every rule but room and ports holds, and the empty node is large enough.
    `places`: tasks of the class that the empty node takes.
    `open`: feasible, ports free and room now. `over`: the overflow. `slots`: tasks of the class
    that fit beside the node's services. `soft`: how well soft preferences are met, 0..1.
    `numbers`: all these but `places`, one by one.
    """

    def __init__(self, cluster: Cluster, spec: Spec, workload: str) -> None:
        self.cluster, self.spec, self.workload = cluster, spec, workload
        self._static = tuple(rule for rule in STATIC_RULES if rule.applies(spec))
        self._on_usage = tuple(rule for rule in USAGE_RULES if rule.applies(spec))
        self.fits_now_count = self.feasible_count = 0
        self.last_asked = 0  # round number, for the table to find classes nobody asks about
        self._shape_place = self._usage_place = self._services = 0
        self._waitable_rows: Rows | None = None
        self._restart()

    # -- reading -------------------------------------------------------------------------------

    @property
    def waitable_rows(self) -> Rows:
        """Rows that may run the class, now or by waiting for tasks to end, ascending."""
        if self._waitable_rows is None:
            self._waitable_rows = np.flatnonzero(self.feasible & (self.service_slots >= 1))
        return self._waitable_rows

    @property
    def background_free(self) -> Floats:
        """The share of each node that background load leaves, 0..1."""
        return self.cluster.background_free

    @property
    def fits_now_rows(self) -> Rows:
        """Rows that may run the class now, ascending."""
        return np.flatnonzero(self.fits_now)

    def may_wait(self, row: int) -> bool:
        """Whether waiting for this node helps: feasible, and its services leave a slot of the class.

        The class need not be up to date: neither changes with tasks.
        """
        cluster = self.cluster
        if self._shape_place != cluster.shape.head or self._services != cluster.service_changes:
            self.refresh()
        return self.scalars.feasible[row] and self.scalars.service_slots[row] >= 1

    def fits_beside_held(self, row: int) -> bool:
        """Whether one more fits beside what is really held, leaving aside who else is meant for the node.

        The class need not be up to date: whether there is room is asked of the cluster itself.
        """
        if self._shape_place != self.cluster.shape.head:
            self.refresh()
        if not self.scalars.feasible[row]:
            return False
        for allocatable, used, _, _, demand in self._room:
            if used[row] + demand > allocatable[row]:
                return False
        return not self._on_usage or self._holds_on_usage(row)

    def _holds_on_usage(self, row: int) -> bool:
        rows = np.array([row])
        return all(bool(rule.holds(self.cluster, self.spec, rows)[0]) for rule in self._on_usage)

    # -- keeping up ----------------------------------------------------------------------------

    def refresh(self) -> None:
        """Catch up with the cluster: costs the rows that changed since the last time."""
        cluster = self.cluster
        shape_end, usage_end = cluster.shape.head, cluster.usage.head
        if shape_end == self._shape_place and usage_end == self._usage_place:
            return
        reused = cluster.usage.since(self._usage_place)
        if shape_end != self._shape_place or reused is None or len(reused) > FEW or self._on_usage:
            self._catch_up(reused)
            return
        self._usage_place = usage_end
        self._judge_room(reused)
        if cluster.service_changes != self._services:
            self._services = cluster.service_changes
            for row in reused:
                self._judge_slots(row)

    def _catch_up(self, reused: list[int] | None) -> None:
        """With much at a time, in arrays."""
        cluster = self.cluster
        reshaped = cluster.shape.since(self._shape_place)
        if reshaped is None or reused is None:
            self._restart()
            return
        self._shape_place, self._usage_place = cluster.shape.head, cluster.usage.head
        self._services = cluster.service_changes
        if reshaped:
            self._judge_shape(np.array(reshaped, dtype=np.intp))
        self._judge_usage(np.array(sorted({*reshaped, *reused}), dtype=np.intp))

    def _restart(self) -> None:
        cluster, rows = self.cluster, self.cluster.capacity
        asks = cluster.parts(self.spec.requests)  # may widen the arrays: before the places
        self._need = np.array([column for column, _ in asks], dtype=np.intp)
        self._asked = np.array([amount for _, amount in asks])
        allocatable, used, meant, lasting = cluster.layer_scalars
        self._room = tuple((allocatable[at], used[at], meant[at], lasting[at], amount) for at, amount in asks)
        self._shape_place, self._usage_place = cluster.shape.head, cluster.usage.head
        self._services = cluster.service_changes
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
            scalars(self.background_free),
        )
        self.fits_now_count = self.feasible_count = 0
        every = np.arange(rows, dtype=np.intp)
        self._judge_shape(every)
        self._judge_usage(every)

    def _judge_shape(self, rows: Rows) -> None:
        cluster, need = self.cluster, self._need
        holds = cluster.present[rows]
        for rule in self._static:
            holds &= rule.holds(cluster, self.spec, rows)
        allocatable = cluster.allocatable.take(rows, axis=0).take(need, axis=1)
        self.empty_capacity[rows] = np.floor((allocatable / self._asked).min(axis=1))
        holds &= self.empty_capacity[rows] >= 1
        self._waitable_rows = None
        self.feasible_count += int(np.count_nonzero(holds) - np.count_nonzero(self.feasible[rows]))
        self.feasible[rows] = holds
        self.preference_score[rows] = preference_scores(cluster, self.spec, rows)

    def _judge_usage(self, rows: Rows) -> None:
        cluster, need = self.cluster, self._need
        demand = self._asked
        allocatable, used, meant, lasting = cluster.layers.take(rows, axis=1).take(need, axis=2)
        over = ((used + meant + demand - allocatable) / demand).max(axis=1)
        self.overflow[rows] = over
        slots = np.maximum(np.floor(((allocatable - lasting) / demand).min(axis=1)), 0.0)
        if self._waitable_rows is not None and np.any((slots >= 1) != (self.service_slots[rows] >= 1)):
            self._waitable_rows = None
        self.service_slots[rows] = slots
        now_open = self.feasible[rows] & (over <= 0)
        for rule in self._on_usage:
            now_open &= rule.holds(cluster, self.spec, rows)
        self.fits_now_count += int(np.count_nonzero(now_open) - np.count_nonzero(self.fits_now[rows]))
        self.fits_now[rows] = now_open

    def _judge_room(self, rows: Iterable[int]) -> None:
        """The same for few rows of a class without usage rules, in plain numbers, slots aside.

        Nearly every change is of one row, and an array of one costs twenty times as much as a number.
        """
        numbers, room = self.scalars, self._room
        for row in rows:
            over = -inf
            for allocatable, used, meant, _, demand in room:
                over_here = (used[row] + meant[row] + demand - allocatable[row]) / demand
                if over_here > over:
                    over = over_here
            numbers.overflow[row] = over
            is_open = over <= 0 and numbers.feasible[row]
            if is_open != numbers.fits_now[row]:
                numbers.fits_now[row] = is_open
                self.fits_now_count += 1 if is_open else -1

    def _judge_slots(self, row: int) -> None:
        """The same for the slots of one row, which change only with services and shape."""
        least = min(
            (allocatable[row] - lasting[row]) / demand for allocatable, _, _, lasting, demand in self._room
        )
        slots = max(floor(least), 0)
        if (slots >= 1) != (self.scalars.service_slots[row] >= 1):
            self._waitable_rows = None
        self.scalars.service_slots[row] = slots

    # -- explaining ----------------------------------------------------------------------------

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules this class is asked, in kube-scheduler's order, room excepted."""
        return self._static + self._on_usage
