"""InterPodAffinity, one part of it: required anti-affinity of pods on nodes keeps matching pods away.

The pod's own required inter-pod affinity is not implemented: a pod that has any is refused (unsupported.py).
"""

from __future__ import annotations

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds = np.ones(len(rows), dtype=bool)
    for term in spec.matched_terms:
        column = cluster.labels.column(term.topology_key)
        domains = np.unique(column[list(cluster.anti_affinity.rows(term))])
        holds &= ~np.isin(column[rows], domains[domains != ABSENT])
    return holds


RULE = Rule(
    plugin="InterPodAffinity",
    reason="node(s) didn't satisfy existing pods anti-affinity rules",
    applies=lambda spec: bool(spec.matched_terms),
    holds=_holds,
    after_room=True,
)
