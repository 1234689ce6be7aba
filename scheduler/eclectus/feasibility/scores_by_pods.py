"""Preference scores of pods with preferences about other pods: pod affinity and soft topology spread.

They count beside preferred node affinity and taints (preferences.py), with kube-scheduler's weights for
InterPodAffinity (2) and PodTopologySpread (2), and normalised as there, but among all nodes that may run the
pod, not those with room:

    score = (w of the node itself + 2 attraction + 2 spread) / (w + 2 + 2)

w is 5 with preferred node affinity and 3 without; what a pod does not state is left out of both sums. Where
pods elsewhere do not distinguish the nodes, all have 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from eclectus.cluster.changelog import EntryLog, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only
from eclectus.feasibility.room import Floats
from eclectus.feasibility.scores.inter_pod_affinity import inter_pod_affinity
from eclectus.feasibility.scores.pod_topology_spread import crowding, pod_topology_spread
from eclectus.feasibility.scores.whole import MOST, Ints
from eclectus.feasibility.shape_values import ShapeValues
from eclectus.feasibility.topology.pod_preferences import MAX_FLIPS, PodPreferences

ATTRACTION_WEIGHT, SPREAD_WEIGHT = 2, 2

Range = tuple[int, int]


class Ranges(NamedTuple):
    """The least and the greatest number among the nodes that may run the pod: what scores are relative to."""

    attraction: Range
    crowding: Range
    weights: tuple[float, ...]  # of the counts of each constraint


class ScoresByPods:
    """The preference scores of one kind of pod, up to date after `refresh`.

    `pods`: the preferences about other pods. `flips`: arrays of rows whose score has changed for another
    reason than a change of their own nodes.
    """

    def __init__(
        self,
        cluster: Cluster,
        pods: PodPreferences,
        may_run: ShapeValues[np.bool_],
        own: tuple[ShapeValues[np.float64], int],
    ) -> None:
        """`own`: the scores of the nodes themselves, and what they weigh."""
        self._cluster, self.pods, self._may_run, self._own = cluster, pods, may_run, own
        self.flips = EntryLog[Rows](MAX_FLIPS)
        self._shape_cursor = self._flip_cursor = -1
        self._scores: Floats = np.zeros(0)
        self.refresh()

    def refresh(self) -> Floats:
        """The scores, 0..1, shape [capacity], read-only; replaced when the cluster's arrays are."""
        cluster, pods = self._cluster, self.pods
        pods.refresh()
        if self._shape_cursor != cluster.shape.head:
            self._shape_cursor, self._flip_cursor = cluster.shape.head, pods.flips.head
            self._follow_shape()
        elif self._flip_cursor != pods.flips.head:
            flipped = pods.flips.entries_since(self._flip_cursor)
            self._flip_cursor = pods.flips.head
            self._follow_pods(flipped)
        return self._view

    def _follow_shape(self) -> None:
        if len(self._scores) != self._cluster.capacity:
            self._scores = np.zeros(self._cluster.capacity)
            self._view = read_only(self._scores)
        may_run = self._may_run.refresh()
        self._rows: Rows = np.flatnonzero(may_run)
        self._scored: Rows = self._rows[self.pods.has_keys(self._rows)]
        self._ranges = self._ranges_now()
        self._write_all()

    def _follow_pods(self, flipped: list[Rows] | None) -> None:
        ranges = self._ranges_now()
        if flipped is None or ranges != self._ranges:
            self._ranges = ranges
            self._write_all()
            return
        for rows in flipped:
            self._scores[rows] = self._of(rows)
            self.flips.record(rows)

    def _write_all(self) -> None:
        self._scores[:] = self._of(slice(len(self._scores)))
        self.flips.record_all()

    # -- the scores ------------------------------------------------------------------------------

    def _ranges_now(self) -> Ranges:
        pods, weights = self.pods, self.pods.weights()
        attraction = _range(pods.attraction[self._rows]) if pods.attracts else (0, 0)
        crowded = _range(self._crowding(self._scored, weights)) if pods.spreads else (0, 0)
        return Ranges(attraction, crowded, weights)

    def _crowding(self, rows: Rows | slice, weights: tuple[float, ...]) -> Ints:
        nodes = rows.stop if isinstance(rows, slice) else len(rows)
        return crowding(tuple(self.pods.constraints(rows, weights)), nodes)

    def _of(self, rows: Rows | slice) -> Floats:
        own, own_weight = self._own
        total, weight = own_weight * own.refresh()[rows], own_weight
        if self.pods.attracts:
            total, weight = total + ATTRACTION_WEIGHT * self._attraction(rows), weight + ATTRACTION_WEIGHT
        if self.pods.spreads:
            total, weight = total + SPREAD_WEIGHT * self._spread(rows), weight + SPREAD_WEIGHT
        score: Floats = total / weight
        return score

    def _attraction(self, rows: Rows | slice) -> Floats | float:
        least, most = self._ranges.attraction
        if least == most:
            return 1.0
        return np.clip(inter_pod_affinity(self.pods.attraction[rows], least, most) / MOST, 0.0, 1.0)

    def _spread(self, rows: Rows | slice) -> Floats:
        crowded = self._crowding(rows, self._ranges.weights)
        scores = np.clip(pod_topology_spread(crowded, *self._ranges.crowding) / MOST, 0.0, 1.0)
        return np.where(self.pods.has_keys(rows), scores, 0.0)


def _range(values: Ints) -> Range:
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)
