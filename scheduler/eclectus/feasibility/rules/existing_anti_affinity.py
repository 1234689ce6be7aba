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
    for term in spec.matched_terms:
        column = cluster.labels.column(term.topology_key)
        is_taken = np.zeros(len(cluster.labels.codes(term.topology_key)) + 1, dtype=bool)
        is_taken[column[list(cluster.anti_affinity.pods(term))]] = True
        is_taken[ABSENT] = False  # the last place: no domain
        holds &= ~is_taken[column[rows]]
    return holds


def _holds_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    for term in spec.matched_terms:
        column, pods = cluster.labels.column(term.topology_key), cluster.anti_affinity.pods(term)
        domain = column[row]
        if domain == ABSENT:
            continue
        freed = sum(term in pod.anti_affinity_terms for pod in removed)
        in_domain = sum(count for each, count in pods.items() if column[each] == domain)
        if in_domain > freed:
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
