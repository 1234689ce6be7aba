"""Preference scores of pods with preferences about other pods: pod affinity and soft topology spread.

They count beside preferred node affinity and taints (preferences.py), with kube-scheduler's weights for
InterPodAffinity (2) and PodTopologySpread (2), and normalised as there, but among all nodes that may run the
pod, not those with room:

    score = (w of the node itself + 2 attraction + 2 spread) / (w + 2 + 2)

w is 5 with preferred node affinity and 3 without; what a pod does not state is left out of both sums. Where
pods elsewhere do not distinguish the nodes, all have 1.
"""

from __future__ import annotations

import numpy as np

from eclectus.cluster.changelog import EntryLog, Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.scalars import read_only
from eclectus.feasibility.node_groups import NodeGroups
from eclectus.feasibility.room import Floats
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.scores import MOST, Ints, crowding, inter_pod_affinity, pod_topology_spread
from eclectus.feasibility.static_rules import ShapeValues
from eclectus.feasibility.topology.pod_preferences import PodPreferences

ATTRACTION_WEIGHT, SPREAD_WEIGHT = 2, 2

MAX_FLIPS = 256  # entries of rows; who is further behind starts over


class ScoresByPods:
    """The preference scores of one kind of pod, up to date after `refresh`.

    `pods`: the preferences about other pods. `groups`: the nodes that these cannot tell apart. `flips`:
    arrays of rows whose score has changed.
    """

    def __init__(
        self,
        cluster: Cluster,
        pods: PodPreferences,
        may_run: ShapeValues[np.bool_],
        own: tuple[ShapeValues[np.float64], int],
    ) -> None:
        """`own`: the scores of the nodes themselves, and what they weigh."""
        scores, self._own_weight = own
        self._cluster, self.pods = cluster, pods
        self.groups = NodeGroups(cluster, pods, may_run, scores)
        self.flips = EntryLog[Rows](MAX_FLIPS)
        self._version = pods.version
        self._scores: Floats = np.zeros(0)
        self._of_groups = self._of_groups_now()
        self._write_all()

    def refresh(self) -> Floats:
        """The scores, 0..1, shape [capacity], read-only; replaced when the cluster's arrays are."""
        moved = self.groups.refresh()
        if moved == [] and self._version == self.pods.version:
            return self._view
        self._version = self.pods.version
        before, self._of_groups = self._of_groups, self._of_groups_now()
        if moved is None or self._differ_from(before):
            self._write_all()
            return self._view
        for rows in moved:
            self._scores[rows] = self._of_groups[self.groups.of_row[rows]]
            self.flips.record(rows)
        return self._view

    def _differ_from(self, before: Floats) -> bool:
        """Whether a group with nodes has another score than before."""
        known = len(before)
        return bool(((self._of_groups[:known] != before) & (self.groups.sizes[:known] > 0)).any())

    def _write_all(self) -> None:
        if len(self._scores) != self._cluster.capacity:
            self._scores = np.zeros(self._cluster.capacity)
            self._view = read_only(self._scores)
        np.take(self._of_groups, self.groups.of_row, out=self._scores)
        self.flips.record_all()

    # -- the scores of groups --------------------------------------------------------------------

    def _of_groups_now(self) -> Floats:
        pods, groups, may_run = self.pods, self.groups, self.groups.may_run
        total, weight = self._own_weight * groups.own, self._own_weight
        if pods.attracts:
            sums = groups.attraction()
            total, weight = total + ATTRACTION_WEIGHT * _attraction(sums, may_run), weight + ATTRACTION_WEIGHT
        if pods.spreads:
            crowded = crowding(tuple(groups.constraints(pods.weights())), len(groups))
            spread = _spread(crowded, groups.has_keys(), may_run)
            total, weight = total + SPREAD_WEIGHT * spread, weight + SPREAD_WEIGHT
        scores: Floats = total / weight
        return scores


def _attraction(sums: Ints, may_run: Mask) -> Floats | float:
    least, most = range_of(sums[may_run])
    if least == most:
        return 1.0
    return _share(inter_pod_affinity(sums, least, most))


def _spread(crowded: Ints, has_keys: Mask, may_run: Mask) -> Floats:
    least, most = range_of(crowded[has_keys & may_run])
    return _share(pod_topology_spread(crowded, least, most)) * has_keys


def _share(scores: Ints) -> Floats:
    """0..1, of groups that may not run the pod too."""
    return np.minimum(np.maximum(scores, 0), MOST) / MOST


def range_of(values: Ints) -> tuple[int, int]:
    """The least and the greatest; 0 without values."""
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)
