"""InterPodAffinity: how much the pods in a node's topology domains attract the pod or rather keep it away.

The sum has the weights of the pod's own preferred terms for every pod that they match, those of preferred
terms of pods that match this one, and 1 for every required affinity term of pods that matches it.
"""

from __future__ import annotations

import numpy as np

from eclectus.feasibility.scores.whole import MOST, Ints


def inter_pod_affinity(sums: Ints, least: int, most: int) -> Ints:
    """The score of nodes with these sums; `least` and `most`: of those among nodes that fit.

    0 for all where they are equal.
    """
    if most <= least:
        return np.zeros(len(sums), dtype=np.int64)
    # The operations are in the order of kube-scheduler, because another order may round to another number.
    return (MOST * ((sums - least) / float(most - least))).astype(np.int64)
