"""Which nodes a pod's volumes refuse, in kube-scheduler's words and order.

VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone: the first that refuses a node counts it, but
VolumeBinding counts it once for its bound claims and once for its unbound ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules import volume_binding, volume_limits, volume_restrictions, volume_zone
from eclectus.feasibility.rules.rule import Rule
from eclectus.model.objects import Spec, Task

_PLUGINS: Sequence[tuple[Rule, ...]] = (
    (volume_restrictions.RULE,),
    (volume_limits.RULE,),
    (volume_binding.BOUND, volume_binding.UNBOUND_NOW, volume_binding.STORAGE_NOW),
    (volume_zone.RULE,),
)
VOLUME_RULES = tuple(rule for rules in _PLUGINS for rule in rules)


def volume_refusals(
    spec: Spec, cluster: Cluster, rows: Rows
) -> Iterator[tuple[str, list[tuple[str, int]], Rows]]:
    """By plugin that reads something of the pod: its name, reasons with counts of nodes, the rows left."""
    for rules in _PLUGINS:
        asked = [rule for rule in rules if rule.applies(spec)]
        passing, refused = np.ones(len(rows), dtype=bool), list[tuple[str, int]]()
        for rule in asked if len(rows) else ():
            holds = rule.holds(cluster, spec, rows)
            refused.append((rule.reason, len(rows) - int(np.count_nonzero(holds))))
            passing &= holds
        rows = rows[passing]
        if asked:
            yield asked[0].plugin, refused, rows


def volume_reasons_without(
    spec: Spec, cluster: Cluster, row: int, removed: Collection[Task]
) -> tuple[str, ...]:
    """Those of the first plugin that refuses a row without these of its pods; empty if none does."""
    for rules in _PLUGINS:
        asked = [rule for rule in rules if rule.applies(spec)]
        refused = tuple(rule.reason for rule in asked if not rule.holds_without(cluster, spec, row, removed))
        if refused:
            return refused
    return ()
