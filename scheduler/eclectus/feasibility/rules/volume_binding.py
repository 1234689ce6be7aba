"""VolumeBinding: the nodes that reach the volumes of a pod's claims, or can get volumes for them.

A pod is blocked if a claim is missing, or should be bound already: no node will do then, and the message says
which claim it is (engine/volumes/). Where unbound claims can get volumes is kept in `Cluster.volumes.reach`:
as known when the step began, by which a node is feasible, and as it is now, by which a pod fits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.storage import Places
from eclectus.feasibility.rules.node_affinity import term_holds
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec

PLUGIN = "VolumeBinding"
UNREACHED = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_STORAGE = "node(s) did not have enough free storage"

PlacesOf = Callable[[Cluster, Spec], Places | None]


def _reaches_bound(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds = np.ones(len(rows), dtype=bool)
    for terms in spec.volumes.affinity:
        any_term = np.zeros(len(rows), dtype=bool)
        for term in terms:
            any_term |= term_holds(cluster, term, rows)
        holds &= any_term
    return holds


def _known(cluster: Cluster, spec: Spec) -> Places | None:
    reach = cluster.volumes.reach.get(spec.volumes.reach)
    return None if reach is None else reach.known


def _now(cluster: Cluster, spec: Spec) -> Places | None:
    reach = cluster.volumes.reach.get(spec.volumes.reach)
    return None if reach is None else reach.now


def _finds_volumes(places_of: PlacesOf, cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    places = places_of(cluster, spec)
    return np.zeros(len(rows), dtype=bool) if places is None else (places.gets | places.is_short)[rows]


def _finds_storage(places_of: PlacesOf, cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    places = places_of(cluster, spec)
    return np.ones(len(rows), dtype=bool) if places is None else ~places.is_short[rows]


def _unbound_rule(reason: str, condition: str, holds: Callable[[Cluster, Spec, Rows], Mask]) -> Rule:
    return Rule(
        plugin=PLUGIN,
        reason=reason,
        applies=lambda spec: bool(spec.volumes.unbound),
        holds=holds,
        after_room=True,
        condition=condition,
    )


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
# A node without volumes for unbound claims is refused by one of two rules: volumes would help, or storage.
_VOLUMES, _STORAGE = (NO_VOLUME, "volumes for its claims"), (NO_STORAGE, "free storage for its claims")
UNBOUND = _unbound_rule(*_VOLUMES, partial(_finds_volumes, _known))
STORAGE = _unbound_rule(*_STORAGE, partial(_finds_storage, _known))
UNBOUND_NOW = _unbound_rule(*_VOLUMES, partial(_finds_volumes, _now))
STORAGE_NOW = _unbound_rule(*_STORAGE, partial(_finds_storage, _now))
