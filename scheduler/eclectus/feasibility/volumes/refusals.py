"""Which nodes a pod's volumes refuse, in kube-scheduler's words and order.

VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone: the first that refuses a node counts it, but
VolumeBinding counts it once for its bound claims and once for its unbound ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules import volume_binding, volume_limits, volume_restrictions, volume_zone
from eclectus.feasibility.rules.rule import Rule
from eclectus.model.objects import Spec

_PLUGINS: Sequence[tuple[Rule, ...]] = (
    (volume_restrictions.RULE,),
    (volume_limits.RULE,),
    (volume_binding.BOUND, volume_binding.UNBOUND_NOW),
    (volume_zone.RULE,),
)
VOLUME_RULES = tuple(rule for rules in _PLUGINS for rule in rules)


def with_volumes(spec: Spec, cluster: Cluster, rows: Rows, counts: Counter[str]) -> Rows:
    """The rows on which the pod can have all its volumes; the others are added to `counts` by reason."""
    for rules in _PLUGINS:
        passing = np.ones(len(rows), dtype=bool)
        for rule in rules:
            if len(rows) and rule.applies(spec):
                holds = rule.holds(cluster, spec, rows)
                counts[rule.reason] += len(rows) - int(np.count_nonzero(holds))
                passing &= holds
        rows = rows[passing]
    return rows
