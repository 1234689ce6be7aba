"""InterPodAffinity, its symmetric third: residents' required anti-affinity keeps matching pods away.

The incoming pod's own inter-pod rules are not built yet; a pod that has any is refused whole.
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
    for guard in spec.matched_terms:
        column = cluster.labels.column(guard.topology_key)
        closed = np.unique(column[list(cluster.anti_affinity.rows(guard))])
        holds &= ~np.isin(column[rows], closed[closed != ABSENT])
    return holds


RULE = Rule(
    plugin="InterPodAffinity",
    reason="node(s) didn't satisfy existing pods anti-affinity rules",
    applies=lambda spec: bool(spec.matched_terms),
    holds=_holds,
    after_room=True,
)
