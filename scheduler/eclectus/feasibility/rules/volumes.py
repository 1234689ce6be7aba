"""The rules about the volumes of a pod: those that it reaches or can get, their zones, and how many of them.

Each has kube-scheduler's plugin name and words; table.py has their order.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.node_volumes import claim_keys
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.nodes import any_term_holds, has_label, has_one
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec, Task

# -- VolumeBinding: the nodes that reach the volumes of a pod's claims, or can get volumes for them ------
# A pod is blocked if a claim is missing, or should be bound already: no node will do then, and the message
# says which claim it is (engine/volumes/). Where unbound claims can get volumes is kept in
# `Cluster.volumes.reach`: as known when the step began, by which a node is feasible, and as it is now, by
# which a pod fits.

PLUGIN = "VolumeBinding"
UNREACHED = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_STORAGE = "node(s) did not have enough free storage"


def _reaches_bound(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    holds = np.ones(len(rows), dtype=bool)
    for terms in spec.volumes.affinity:
        holds &= any_term_holds(cluster, terms, rows)
    return holds


def _finds_volumes(now: bool, cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    reach = cluster.volumes.reach.get(spec.volumes.reach)
    if reach is None:
        return np.zeros(len(rows), dtype=bool)
    places = reach.now if now else reach.known
    return (places.gets | places.is_short)[rows]


def _finds_storage(now: bool, cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    reach = cluster.volumes.reach.get(spec.volumes.reach)
    if reach is None:
        return np.ones(len(rows), dtype=bool)
    return ~(reach.now if now else reach.known).is_short[rows]


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
UNBOUND = _unbound_rule(*_VOLUMES, partial(_finds_volumes, False))
STORAGE = _unbound_rule(*_STORAGE, partial(_finds_storage, False))
UNBOUND_NOW = _unbound_rule(*_VOLUMES, partial(_finds_volumes, True))
STORAGE_NOW = _unbound_rule(*_STORAGE, partial(_finds_storage, True))

# -- VolumeZone: a node that has zone or region labels must have those of the pod's bound volumes --------
# A volume's label may name several zones. A node is compared by the label of the same name, or else by the
# one that replaced it: volumes may be older than nodes.

REPLACED_BY = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONE_LABELS = (*REPLACED_BY, *REPLACED_BY.values())


def _in_zones(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    in_zones = np.ones(len(rows), dtype=bool)
    for key, values in spec.volumes.zones:
        matches = has_one(cluster, key, values, rows)
        if key in REPLACED_BY:
            matches |= ~has_label(cluster, key, rows) & has_one(cluster, REPLACED_BY[key], values, rows)
        in_zones &= matches
    has_zone = np.zeros(len(rows), dtype=bool)
    for key in ZONE_LABELS:
        has_zone |= has_label(cluster, key, rows)
    return in_zones | ~has_zone


VOLUME_ZONE = Rule(
    plugin="VolumeZone",
    reason="node(s) had no available volume zone",
    applies=lambda spec: bool(spec.volumes.zones),
    holds=_in_zones,
    after_room=True,
    condition="zones of its volumes",
)

# -- NodeVolumeLimits: the CSI driver of a volume is installed on the node, if it asks for that ----------
# A CSIDriver does with `preventPodSchedulingIfMissing`; the CSINode says what is installed.

NOT_INSTALLED = "CSI driver is not installed on the node"
LIMITS_PLUGIN = "NodeVolumeLimits"


def _has(driver: str, cluster: Cluster, rows: Rows) -> Mask:
    return cluster.volumes.attached.are_installed(driver, rows)


def _has_all(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    found: Mask = np.logical_and.reduce([_has(driver, cluster, rows) for driver in spec.volumes.drivers])
    return found


DRIVERS = Rule(
    plugin=LIMITS_PLUGIN,
    reason=f"a {NOT_INSTALLED}",
    applies=lambda spec: bool(spec.volumes.drivers),
    holds=_has_all,
    after_room=True,
    conditions=lambda spec: [(f"CSI driver {each}", partial(_has, each)) for each in spec.volumes.drivers],
)


def of_driver(driver: str) -> Rule:
    """DRIVERS for one driver, with its name in kube-scheduler's words."""

    def holds(cluster: Cluster, _spec: Spec, rows: Rows) -> Mask:
        return _has(driver, cluster, rows)

    return replace(DRIVERS, reason=f"{driver} {NOT_INSTALLED}", holds=holds)


# -- NodeVolumeLimits: a CSI driver can attach so many volumes to a node, as its CSINode says ------------
# Volumes count that the claims of pods on the node name, and those that are attached to it. As in
# kube-scheduler a volume of the pod to be placed that is attached to the node, and that no pod there uses,
# counts as attached and as new.


def _limits_hold(
    cluster: Cluster, spec: Spec, rows: Rows, freed: Mapping[str, int], detached: Collection[str]
) -> Mask:
    """`freed`: driver -> volumes attached there no longer; `detached`: claims used there no longer."""
    holds = np.ones(len(rows), dtype=bool)
    use = spec.volume_use
    for driver in dict.fromkeys((*dict(use.attached), *dict(use.attached_shared))):
        free = cluster.volumes.attached.free(driver)
        if free is not None:
            new = _to_attach(cluster, spec, driver, rows, detached)
            holds &= (new == 0) | (free[rows] + freed.get(driver, 0) >= new)
    return holds


def _to_attach(
    cluster: Cluster, spec: Spec, driver: str, rows: Rows, detached: Collection[str]
) -> NDArray[np.int64]:
    """How many volumes of the driver are attached to each of the rows with the pod; a few of them may be."""
    use = spec.volume_use
    new = np.full(len(rows), dict(use.attached).get(driver, 0), dtype=np.int64)
    for its_driver, key in use.attached_shared:
        if its_driver == driver:
            attached = () if key in detached else list(cluster.volumes.claim_users.users.get(key, ()))
            new += ~np.isin(rows, attached)
    return new


def _limits_hold_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    detached, freed = cluster.volumes.claim_users.detached(row, removed)
    return bool(_limits_hold(cluster, spec, np.array([row]), freed, detached)[0])


VOLUME_LIMITS = Rule(
    plugin=LIMITS_PLUGIN,
    reason="node(s) exceed max volume count",
    applies=lambda spec: bool(spec.volume_use.attached or spec.volume_use.attached_shared),
    holds=lambda cluster, spec, rows: _limits_hold(cluster, spec, rows, {}, ()),
    after_room=True,
    without=_limits_hold_without,
)

# -- VolumeRestrictions: a ReadWriteOncePod claim that a pod uses is free for no other pod, on any node ---


def _claims_are_free(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    is_free = not any(cluster.volumes.claim_users.pods(key) for key in spec.volume_use.exclusive)
    return np.full(len(rows), is_free)


def _claims_are_free_without(cluster: Cluster, spec: Spec, _row: int, removed: Collection[Task]) -> bool:
    freed = [key for pod in removed for key in claim_keys(pod)]
    return all(cluster.volumes.claim_users.pods(key) <= freed.count(key) for key in spec.volume_use.exclusive)


VOLUME_RESTRICTIONS = Rule(
    plugin="VolumeRestrictions",
    reason="node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod",
    applies=lambda spec: bool(spec.volume_use.exclusive),
    holds=_claims_are_free,
    after_room=True,
    without=_claims_are_free_without,
)
