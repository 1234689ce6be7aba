"""NodeAffinity's other half: node affinity that the pod's profile adds (`addedAffinity`).

kube-scheduler checks it before the pod's own and with words of its own, which do not show users what an
administrator has configured.
"""

from __future__ import annotations

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.node_affinity import term_holds
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    any_term = np.zeros(len(rows), dtype=bool)
    for term in spec.enforced_affinity or ():
        any_term |= term_holds(cluster, term, rows)
    return any_term


RULE = Rule(
    plugin="NodeAffinity",
    reason="node(s) didn't match scheduler-enforced node affinity",
    applies=lambda spec: spec.enforced_affinity is not None,
    holds=_holds,
    condition="the scheduler-enforced node affinity",
)
