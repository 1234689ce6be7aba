"""InterPodAffinity, one part of it: required anti-affinity of pods on nodes keeps matching pods away.

The pod's own required inter-pod affinity is not implemented: a pod that has any is refused (unsupported.py).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec, Task


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds = np.ones(len(rows), dtype=bool)
    for key, (taken, _) in cluster.anti_affinity.matched(spec.matched_terms).by_key.items():
        codes, column = cluster.labels.codes(key), cluster.labels.column(key)
        if not codes:  # no node is in such a domain
            continue
        is_taken = np.zeros(len(codes) + 1, dtype=bool)
        is_taken[column[taken]] = True
        is_taken[ABSENT] = False  # the last place: no domain
        holds &= ~is_taken[column[rows]]
    return holds


def _holds_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    matched = cluster.anti_affinity.matched(spec.matched_terms)
    freed = matched.pairs_of(removed)
    for key, (rows, pairs) in matched.by_key.items():
        column = cluster.labels.column(key)
        domain = column[row]
        if domain != ABSENT and pairs[column[rows] == domain].sum() > freed[key]:
            return False
    return True


RULE = Rule(
    plugin="InterPodAffinity",
    reason="node(s) didn't satisfy existing pods anti-affinity rules",
    applies=lambda spec: bool(spec.matched_terms),
    holds=_holds,
    after_room=True,
    without=_holds_without,
)
