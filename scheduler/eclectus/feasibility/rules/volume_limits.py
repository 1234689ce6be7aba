"""NodeVolumeLimits: a CSI driver can attach so many volumes to a node, as its CSINode says.

Volumes count that the claims of pods on the node name, and those that are attached to it. As in
kube-scheduler a volume of the pod to be placed that is attached to the node, and that no pod there uses,
counts as attached and as new.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec, Task


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    return _limits_hold(cluster, spec, rows, {}, frozenset())


def _holds_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    detached, freed = cluster.volumes.claim_users.detached(row, removed)
    return bool(_limits_hold(cluster, spec, np.array([row]), freed, detached)[0])


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
            attached = () if key in detached else list(cluster.volumes.claim_users.pods_by_row(key))
            new += ~np.isin(rows, attached)
    return new


RULE = Rule(
    plugin="NodeVolumeLimits",
    reason="node(s) exceed max volume count",
    applies=lambda spec: bool(spec.volume_use.attached or spec.volume_use.attached_shared),
    holds=_holds,
    after_room=True,
    without=_holds_without,
)
