"""kube-scheduler's default scores: eight plugins, each 0..100, added up by weight; ties are drawn.

The weights are the defaults of kube-scheduler 1.37, and the scores its formulas (feasibility/scores): a node
wins here if and only if it would there. As there, scores are relative to the nodes that the pod fits on now.

Departures:
- all nodes are scored, where kube-scheduler stops at a sample of them in clusters of more than 100;
- the score of dynamic resource allocation is not counted; of several CSIStorageCapacities for a node and a
  StorageClass the greatest counts;
- a constraint on kubernetes.io/hostname counts the pods of all nodes with an equal value of this label.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from eclectus.cluster.changelog import AnyRows, Rows
from eclectus.feasibility.scores import (
    Ints,
    balanced_allocation,
    crowding,
    image_locality,
    inter_pod_affinity,
    least_allocated,
    pod_topology_spread,
    share_of_most,
    taint_toleration,
)
from eclectus.feasibility.scores_by_pods import NodeGroups, range_of
from eclectus.feasibility.task_class import TaskClass
from eclectus.feasibility.volume_reaches import storage_scores, storage_version
from eclectus.framework import Action, Bind, Place, PlaceTraits, Unschedulable, View
from eclectus.framework.view import Ranking
from eclectus.maths.numbers import Floats
from eclectus.model.objects import Task, amount_of
from eclectus.model.settings import Setting, setting

GREATEST_AMOUNT = 2.0**53  # that takes part in whole arithmetic, of what nodes claim


class Ranges(NamedTuple):
    """What scores are relative to: of the nodes that the pod fits on now, the greatest."""

    taints: int = 0  # the greatest number of taints not tolerated
    node_affinity: int = 0  # the greatest sum of weights
    images: Hashable = ()  # which nodes have them
    storage: int = 0  # the version of what its claims can get


def _weight(plugin: str) -> Setting:
    return Setting(f"weight of {plugin}; 0 leaves it out", why="as in kube-scheduler", least=0, most=100)


@dataclass(eq=False)
class KubeScores(Place):
    """The node with the greatest sum of kube-scheduler's scores."""

    taint_toleration: int = setting(3, _weight("TaintToleration, PreferNoSchedule taints"))
    node_affinity: int = setting(2, _weight("NodeAffinity, preferred node affinity"))
    pod_topology_spread: int = setting(2, _weight("PodTopologySpread, ScheduleAnyway"))
    inter_pod_affinity: int = setting(2, _weight("InterPodAffinity, preferred pod affinity"))
    node_resources_fit: int = setting(1, _weight("NodeResourcesFit, LeastAllocated"))
    balanced_allocation: int = setting(1, _weight("NodeResourcesBalancedAllocation"))
    image_locality: int = setting(1, _weight("ImageLocality, images that nodes have already"))
    volume_binding: int = setting(1, _weight("VolumeBinding, storage that stays free"))

    @property
    def traits(self) -> PlaceTraits:
        """Images are needed unless they weigh nothing."""
        return PlaceTraits(needs=frozenset({"images"})) if self.image_locality else PlaceTraits()

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        """Place each task on the node of the greatest score; unschedulable if no node has room."""
        for task in pending:
            task_class, best = view.task_class(task), None
            if task_class.fits_now_count:
                best = self._ranking(view, task_class).draw_best(view.rng)
            yield Unschedulable(task) if best is None else Bind(task, best[0])

    def _ranking(self, view: View, task_class: TaskClass) -> Ranking:
        ranges = _ranges(task_class)
        cost, groups = partial(self._cost, ranges), task_class.node_groups
        if groups is None:
            return view.ranking(task_class, cost, self, ranges)
        by_pods = self._by_pods(task_class, groups)
        weigh, weigh_epoch = partial(_weigh, groups, by_pods), by_pods.tobytes()
        return view.ranking(task_class, cost, self, ranges, weigh=weigh, weigh_epoch=weigh_epoch)

    def _cost(self, ranges: Ranges, task_class: TaskClass, rows: Rows) -> Floats:
        """The sum of all scores but those by other pods, with a minus; inf where the task does not fit."""
        fits = task_class.fits_now[rows]
        cost, fitting = np.full(len(rows), np.inf), rows[fits]
        cost[fits] = -self._total(task_class, ranges, fitting)
        return cost

    def _total(self, task_class: TaskClass, ranges: Ranges, rows: Rows) -> Ints:
        taints = task_class.untolerated_taints.refresh()[rows]
        total = self.taint_toleration * taint_toleration(taints, ranges.taints)
        total += self._allocation(task_class, rows)
        if task_class.preferred_weights is not None:
            weights = task_class.preferred_weights.refresh()[rows]
            total += self.node_affinity * share_of_most(weights, ranges.node_affinity)
        if ranges.images:
            total += self.image_locality * task_class.kept(_image_scores, ranges.images, task_class)[rows]
        if ranges.storage and self.volume_binding:
            scores = task_class.kept(storage_scores, ranges.storage, task_class.cluster, task_class.spec)
            total += self.volume_binding * scores[rows]
        return total

    def _by_pods(self, task_class: TaskClass, groups: NodeGroups) -> Ints:
        """InterPodAffinity and PodTopologySpread of each group, by weight."""
        rows = task_class.fits_now_rows
        fitting = np.bincount(groups.of_row[rows], minlength=len(groups))
        sums = groups.attraction()
        total = self.inter_pod_affinity * inter_pod_affinity(sums, *range_of(sums[fitting > 0]))
        return total + self.pod_topology_spread * _spread(groups, rows, fitting)

    def _allocation(self, task_class: TaskClass, rows: Rows) -> Ints:
        """NodeResourcesFit and NodeResourcesBalancedAllocation, by weight."""
        cluster, spec = task_class.cluster, task_class.spec
        columns = [cluster.columns["cpu"], cluster.columns["memory"]]
        allocatable = _whole(cluster.allocatable.take(rows, axis=0).take(columns, axis=1))
        scored = _whole(cluster.scored[rows] + spec.score_requests)
        total = self.node_resources_fit * least_allocated(allocatable, scored)
        requested = np.array([amount_of(spec.requests, name) for name in ("cpu", "memory")], dtype=np.int64)
        if requested.any():
            used = _whole(cluster.used.take(rows, axis=0).take(columns, axis=1))
            total += self.balanced_allocation * balanced_allocation(allocatable, used, requested)
        return total


def _whole(amounts: Floats) -> Ints:
    return np.minimum(amounts, GREATEST_AMOUNT).astype(np.int64)


def _ranges(task_class: TaskClass) -> Ranges:
    """Among the nodes that a task of the class fits on now, of which there are some."""
    taints, weights = task_class.untolerated_taints.refresh(), task_class.preferred_weights
    return Ranges(
        taints=_most(task_class, taints),
        node_affinity=0 if weights is None else _most(task_class, weights.refresh()),
        images=_image_versions(task_class),
        storage=storage_version(task_class.cluster, task_class.spec),
    )


def _most(task_class: TaskClass, values: Ints) -> int:
    """Of the nodes that the task fits on; they are sought only where it matters."""
    return int(values[task_class.fits_now_rows].max()) if values.any() else 0


def _spread(groups: NodeGroups, rows: Rows, fitting: Ints) -> Ints | int:
    """PodTopologySpread's score of each group, 0 where a topology key is missing.

    `rows`: those that the task fits on; `fitting`: how many of them are in each group.
    """
    has_keys = groups.has_keys()
    scored = has_keys & (fitting > 0)
    weights = groups.weights_among(scored, rows[scored[groups.of_row[rows]]])
    if not weights or not scored.any():
        return 0
    crowded = crowding(tuple(groups.constraints(weights)), len(groups))
    return np.where(has_keys, pod_topology_spread(crowded, *range_of(crowded[scored])), 0)


def _weigh(groups: NodeGroups, by_pods: Ints, task_class: TaskClass, cost: Floats, rows: AnyRows) -> Floats:
    """The cost with the scores by other pods."""
    weighed: Floats = cost - by_pods.take(groups.of_row[rows], mode="clip")
    return weighed


def _image_versions(task_class: TaskClass) -> Hashable:
    """Another value when the scores of the class's images may be others; empty if no node has any."""
    cluster = task_class.cluster
    versions = tuple(map(cluster.images.version, task_class.spec.images))
    return (versions, len(cluster), cluster.capacity) if any(versions) else ()


def _image_scores(task_class: TaskClass) -> Ints:
    """ImageLocality's score of every row."""
    cluster, rows = task_class.cluster, task_class.cluster.capacity
    images = (cluster.images.sizes(name, rows) for name in task_class.spec.images)
    return image_locality(images, len(cluster), rows)
