"""How well a node meets what a pod would like: preferred node affinity and PreferNoSchedule taints.

The weights are kube-scheduler's (TaintToleration 3, NodeAffinity 2). Its normalisation is not: it
divides by the best node of the moment, so that one node's change moves every score. Here a row's value
depends on that row alone, and a changed node costs one row:

    affinity = weight of the preferences that hold / weight of all
    taints   = 1 / (1 + PreferNoSchedule taints not tolerated)
    soft     = (3 taints + 2 affinity) / 5, or taints alone where the pod states no preference
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
    """0..1 per row, shape [len(rows)]; 1 where nothing is asked."""

    def welcome(taints: Taints) -> float:
        unwelcome = [taint for taint in taints if taint.effect == "PreferNoSchedule"]
        return 1.0 / (1 + sum(not tolerated(taint, spec.tolerations) for taint in unwelcome))

    taints = by_taint_set(cluster, rows, welcome)
    if not spec.preferences:
        return taints
    affinity = np.zeros(len(rows))
    for preference in spec.preferences:
        affinity += preference.weight * term_holds(cluster, preference.term, rows)
    affinity /= sum(preference.weight for preference in spec.preferences)
    return (TAINT_WEIGHT * taints + AFFINITY_WEIGHT * affinity) / (TAINT_WEIGHT + AFFINITY_WEIGHT)
