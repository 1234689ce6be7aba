"""How well a node meets a pod's preferences by itself: preferred node affinity and PreferNoSchedule taints.

The weights are kube-scheduler's (TaintToleration 3, NodeAffinity 2); its normalisation is not used. It
divides by the best score of all nodes, so that a change of one node changes every score. Here the score of a
row depends on this row alone, and a changed node costs one row:

    affinity = weight of the preferences that hold / weight of all
    taints   = 1 / (1 + number of PreferNoSchedule taints not tolerated)
    score    = (3 taints + 2 affinity) / 5, or taints alone if the pod states no preference

Preferences about other pods count beside these (scores_by_pods.py). Whether a term holds, and the score of
taints, are evaluated once for all pods that have them in common (parts.py): pods with many different
preferences often weigh the same few terms.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eclectus.cluster.changelog import AnyRows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.room import Floats
from eclectus.feasibility.rules.rule import Mask
from eclectus.feasibility.rules.taints import Taints, Tolerations, by_taint_set
from eclectus.feasibility.scores import Ints
from eclectus.model.objects import Toleration

TAINT_WEIGHT, AFFINITY_WEIGHT = 3, 2


def taint_scores(cluster: Cluster, tolerations: tuple[Toleration, ...], rows: AnyRows) -> Floats:
    """The score of each row's taints, 0..1, shape [len(rows)]; 1 where all are tolerated."""
    return 1.0 / (1 + untolerated(cluster, tolerations, rows))


def untolerated(cluster: Cluster, tolerations: tuple[Toleration, ...], rows: AnyRows) -> Ints:
    """How many PreferNoSchedule taints of each row the pod does not tolerate, shape [len(rows)]."""
    of_pod = Tolerations(tolerations)

    def count(taints: Taints) -> float:
        soft = (taint for taint in taints if taint.effect == "PreferNoSchedule")
        return sum(not of_pod.tolerate(taint) for taint in soft)

    return by_taint_set(cluster, rows, count).astype(np.int64)


def weigh(terms: Iterable[tuple[int, Mask]], rows: int) -> Floats:
    """The sum of the weights of the terms that hold on each row, from each term's weight and mask."""
    found = np.zeros(rows)
    for weight, holds in terms:
        found += np.multiply(holds, float(weight))
    return found


def scores(taints: Floats, weights: Floats, total: int) -> Floats:
    """The score of each row, 0..1, from that of its taints and the weights of the terms that hold there.

    `total`: the weight of all terms, above 0.
    """
    affinity = weights / total
    return (TAINT_WEIGHT * taints + AFFINITY_WEIGHT * affinity) / (TAINT_WEIGHT + AFFINITY_WEIGHT)
