"""VolumeRestrictions: a ReadWriteOncePod claim that a pod uses is free for no other pod, on whatever node."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.node_volumes import claim_keys
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec, Task


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    is_free = not any(cluster.volumes.claim_users.pods(key) for key in spec.volume_use.exclusive)
    return np.full(len(rows), is_free)


def _holds_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    del row
    freed = [key for pod in removed for key in claim_keys(pod)]
    return all(cluster.volumes.claim_users.pods(key) <= freed.count(key) for key in spec.volume_use.exclusive)


RULE = Rule(
    plugin="VolumeRestrictions",
    reason="node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
    "already in-use by another pod",
    applies=lambda spec: bool(spec.volume_use.exclusive),
    holds=_holds,
    after_room=True,
    without=_holds_without,
)
