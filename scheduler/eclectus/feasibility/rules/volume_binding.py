"""VolumeBinding: the nodes that reach the volumes of a pod's claims, or can get volumes for them.

A pod is blocked if a claim is missing, or should be bound already: no node will do then, and the message says
which claim it is (engine/volumes/). Where unbound claims can get volumes is kept in `Cluster.reach`: as known
when the step began, by which a node is feasible, and as it is now, by which a pod fits.
"""

from __future__ import annotations

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.node_affinity import term_holds
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec

PLUGIN = "VolumeBinding"
UNREACHED = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"


def _reaches_bound(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds = np.ones(len(rows), dtype=bool)
    for terms in spec.volumes.affinity:
        any_term = np.zeros(len(rows), dtype=bool)
        for term in terms:
            any_term |= term_holds(cluster, term, rows)
        holds &= any_term
    return holds


def _known_to_get(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    reach = cluster.reach.get(spec.volumes.reach)
    return np.zeros(len(rows), dtype=bool) if reach is None else reach.known[rows]


def _gets_now(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    reach = cluster.reach.get(spec.volumes.reach)
    return np.zeros(len(rows), dtype=bool) if reach is None else reach.now[rows]


BLOCKED = Rule(
    plugin=PLUGIN,
    reason="pod has PersistentVolumeClaims that are missing or not bound",
    applies=lambda spec: spec.volumes.is_blocked,
    holds=lambda cluster, spec, rows: np.zeros(len(rows), dtype=bool),
    condition="its PersistentVolumeClaims",
)
BOUND = Rule(
    plugin=PLUGIN,
    reason=UNREACHED,
    applies=lambda spec: bool(spec.volumes.affinity),
    holds=_reaches_bound,
    after_room=True,
    condition="node affinity of its volumes",
)
UNBOUND = Rule(
    plugin=PLUGIN,
    reason=NO_VOLUME,
    applies=lambda spec: bool(spec.volumes.unbound),
    holds=_known_to_get,
    after_room=True,
    condition="volumes for its claims",
)
UNBOUND_NOW = Rule(
    plugin=PLUGIN,
    reason=NO_VOLUME,
    applies=lambda spec: bool(spec.volumes.unbound),
    holds=_gets_now,
    after_room=True,
)
