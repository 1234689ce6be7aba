"""VolumeZone: a node that has zone or region labels must have those of the pod's bound volumes.

A volume's label may name several zones. A node is compared by the label of the same name, or else by the one
that replaced it: volumes may be older than nodes.
"""

from __future__ import annotations

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.labels import ABSENT
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.node_affinity import term_holds
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Requirement, Spec, Term

REPLACED_BY = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONE_LABELS = (*REPLACED_BY, *REPLACED_BY.values())


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    in_zones = np.ones(len(rows), dtype=bool)
    for key, values in spec.volumes.zones:
        matches = _has_one(cluster, key, values, rows)
        if key in REPLACED_BY:
            matches |= ~_has_label(cluster, key, rows) & _has_one(cluster, REPLACED_BY[key], values, rows)
        in_zones &= matches
    has_zone = np.zeros(len(rows), dtype=bool)
    for key in ZONE_LABELS:
        has_zone |= _has_label(cluster, key, rows)
    return in_zones | ~has_zone


def _has_label(cluster: Cluster, key: str, rows: Rows) -> Mask:
    has_label: Mask = cluster.labels.column(key)[rows] != ABSENT
    return has_label


def _has_one(cluster: Cluster, key: str, values: tuple[str, ...], rows: Rows) -> Mask:
    return term_holds(cluster, Term((Requirement(key, "In", values),)), rows)


RULE = Rule(
    plugin="VolumeZone",
    reason="node(s) had no available volume zone",
    applies=lambda spec: bool(spec.volumes.zones),
    holds=_holds,
    after_room=True,
    condition="zones of its volumes",
)
