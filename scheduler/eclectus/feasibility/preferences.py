"""How well a node meets a pod's preferences: preferred node affinity and PreferNoSchedule taints.

The weights are kube-scheduler's (TaintToleration 3, NodeAffinity 2); its normalisation is not used. It
divides by the best score of all nodes, so that a change of one node changes every score. Here the score of a
row depends on this row alone, and a changed node costs one row:

    affinity = weight of the preferences that hold / weight of all
    taints   = 1 / (1 + number of PreferNoSchedule taints not tolerated)
    score    = (3 taints + 2 affinity) / 5, or taints alone if the pod states no preference
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.node_affinity import term_holds
from eclectus.feasibility.rules.taints import Taints, by_taint_set, tolerated
from eclectus.model.objects import Spec

TAINT_WEIGHT, AFFINITY_WEIGHT = 3, 2


def preference_scores(cluster: Cluster, spec: Spec, rows: Rows) -> NDArray[np.float64]:
    """The score of each of the rows, 0..1, shape [len(rows)]; 1 where every preference is met."""

    def taint_score(taints: Taints) -> float:
        soft = [taint for taint in taints if taint.effect == "PreferNoSchedule"]
        return 1.0 / (1 + sum(not tolerated(taint, spec.tolerations) for taint in soft))

    taints = by_taint_set(cluster, rows, taint_score)
    if not spec.preferences:
        return taints
    affinity = np.zeros(len(rows))
    for preference in spec.preferences:
        affinity += preference.weight * term_holds(cluster, preference.term, rows)
    affinity /= sum(preference.weight for preference in spec.preferences)
    return (TAINT_WEIGHT * taints + AFFINITY_WEIGHT * affinity) / (TAINT_WEIGHT + AFFINITY_WEIGHT)
