"""Classes of tasks that no rule can tell apart, each with what the rules say of every node.

A class follows the cluster's change logs. A pod that is bound costs each class that is used again one
row; a class that nobody uses costs nothing. Most of a class is made of parts that it shares (parts.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from eclectus.cluster.changelog import EntryLog, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import Scalars, scalars
from eclectus.feasibility.node_groups import NodeGroups
from eclectus.feasibility.parts import Parts
from eclectus.feasibility.room import Floats
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.feasibility.static_rules import ShapeValues
from eclectus.feasibility.topology.mask import TopologyMask
from eclectus.feasibility.topology.pod_preferences import PodPreferences
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


class TaskClass:
    """One class, up to date after `refresh`.

    Arrays over nodes, shape [capacity], read-only; replaced when the cluster's are:
    `feasible`, `fits_now`: where a task of the class may run, and where it can now; see `Fit`.
    `overflow`, `empty_capacity`, `service_slots`: how much room there is; see `RoomArrays`.
    `preference_score`: how well the pod's preferences are met, 0..1; those about other pods included.
    `scalars`: all these but `empty_capacity`, one number at a time.

    Logs of the rows for which other pods may have changed something, though not the node itself: `flips` of
    the rules, `score_flips` of `preference_score`.

    `derived`: what policies keep of the class, such as rankings, by keys of their own; gone with the class.
    """

    def __init__(self, cluster: Cluster, spec: Spec, workload: str, parts: Parts | None = None) -> None:
        """Without `parts` the class shares nothing."""
        parts = Parts(cluster) if parts is None else parts
        self.cluster, self.spec, self.workload = cluster, spec, workload
        self.last_used = 0  # number of the scheduling cycle; written by ClassCache only
        self.derived: dict[object, Any] = {}
        self._fit, self._parts = parts.fit(spec), parts
        self._by_pods = parts.scores_by_pods(spec)
        self._preference_scores = self._by_pods or parts.preference_scores(spec)
        topology, by_pods = self._fit.topology, self._by_pods
        self.flips: Sequence[EntryLog[Rows]] = () if topology is None else (topology.flips,)
        self.score_flips: Sequence[EntryLog[Rows]] = () if by_pods is None else (by_pods.flips,)
        self._follow_shape()

    # -- reading -------------------------------------------------------------------------------

    @property
    def usage_rules(self) -> tuple[Rule, ...]:
        """The rules of the class that depend on the pods of a node alone, in kube-scheduler's order."""
        return self._fit.usage_rules

    @property
    def topology(self) -> TopologyMask | None:
        """The rules about other pods; None where the class has none."""
        return self._fit.topology

    @property
    def pod_preferences(self) -> PodPreferences | None:
        """What other pods say for and against each node; None where the class has no such preferences."""
        return None if self._by_pods is None else self._by_pods.pods

    @property
    def node_groups(self) -> NodeGroups | None:
        """The nodes grouped by what these preferences can tell of them; None where the class has none."""
        return None if self._by_pods is None else self._by_pods.groups

    @property
    def version_of_others(self) -> int:
        """Another number when a pod that a rule or a preference of the class counts has come or left."""
        topology, preferences = self._fit.topology, self.pod_preferences
        of_rules = 0 if topology is None else topology.version
        return of_rules + (0 if preferences is None else preferences.version)

    @cached_property
    def untolerated_taints(self) -> ShapeValues[np.int64]:
        """How many PreferNoSchedule taints of each node the pod does not tolerate; kept once asked for."""
        return self._parts.untolerated(self.spec)

    @cached_property
    def preferred_weights(self) -> ShapeValues[np.int64] | None:
        """The weights of the preferred node affinity that holds on each node; None if the pod has none."""
        return self._parts.preferred_weights(self.spec) if self.spec.preferences else None

    @property
    def background_free(self) -> Floats:
        """The share of each node that background load leaves free, 0..1."""
        return self.cluster.background_free

    @property
    def feasible_count(self) -> int:
        """Nodes that may run a task of the class."""
        return self._fit.feasible_count

    @property
    def fits_now_count(self) -> int:
        """Nodes that can run a task of the class now."""
        return self._fit.fits_now_count

    @property
    def fits_now_rows(self) -> Rows:
        """Rows that can run a task of the class now, ascending."""
        return np.flatnonzero(self.fits_now)

    @property
    def waitable_rows(self) -> Rows:
        """Rows that can run a task of the class, now or after other tasks have ended, ascending."""
        return self._fit.waitable_rows

    def may_wait(self, row: int) -> bool:
        """Whether waiting for this node helps: it is feasible, and its services leave at least one slot.

        May be called without `refresh`: the answer changes with shape and services only.
        """
        cluster = self.cluster
        is_behind = self._fit.room.service_cursor != cluster.service_changes
        if is_behind or self._shape_cursor != cluster.shape.head:
            self.refresh()
        return self.scalars.feasible[row] and self.scalars.service_slots[row] >= 1

    def fits_beside_held(self, row: int) -> bool:
        """Whether one more task fits beside the pods on the node; tentative placements do not count.

        May be called without `refresh`: the room is computed from the cluster.
        """
        if self._shape_cursor != self.cluster.shape.head:
            self.refresh()
        return self._fit.fits_beside_held(row)

    def fit_beside_held(self, rows: Rows) -> Mask:
        """Whether one more task fits beside the pods on each of the rows, shape [len(rows)].

        As `fits_now`, but what is only planned for other waiting pods counts as free.
        """
        return self._fit.fit_beside_held(rows)

    def shortages(self, rows: Rows) -> Iterator[tuple[str, Mask]]:
        """Each resource that a task demands, and which of the rows have too little of it left."""
        return self._fit.room.room.shortages(rows)

    # -- following the cluster -----------------------------------------------------------------

    def refresh(self) -> None:
        """Evaluate the rows that have changed since the last refresh."""
        cluster = self.cluster
        if self._shape_cursor != cluster.shape.head:
            self._follow_shape()
        elif self._fit.usage_cursor != cluster.usage.head:
            self._fit.refresh_usage()
        if self._by_pods is not None:
            self._by_pods.refresh()  # in place: the array is replaced with the cluster's alone

    def _follow_shape(self) -> None:
        """Nodes have changed, and perhaps the cluster's arrays, and so those of the parts."""
        self._shape_cursor = self.cluster.shape.head
        fit = self._fit
        fit.refresh()
        room = fit.room
        self.feasible, self.fits_now, self.preference_score = (
            fit.feasible,
            fit.fits_now,
            self._preference_scores.refresh(),
        )
        self.overflow, self.empty_capacity = room.overflow, room.empty_capacity
        self.service_slots = room.service_slots
        self.scalars = NodeScalars(
            scalars(self.feasible),
            scalars(self.fits_now),
            scalars(self.overflow),
            scalars(self.service_slots),
            scalars(self.preference_score),
            scalars(self.cluster.background_free),
        )
