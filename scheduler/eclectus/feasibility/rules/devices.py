"""Devices: a share needs one device with enough left, and whole devices must be unused.

Not a plugin of kube-scheduler, which has no shared devices, but the filter of plugins that add them
(Open-Gpu-Share and others). The total is checked as for every resource; this rule refuses nodes on which the
total is enough and the single devices are not.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.devices import device_milli
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import DEVICE_MILLI, Spec, Task


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    if cluster.devices is None:
        return np.zeros(len(rows), dtype=bool)
    return cluster.devices.has_room(rows, spec.requests)


def _holds_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    if cluster.devices is None:
        return False
    return cluster.devices.has_room_without(row, spec.requests, [pod.uid for pod in removed])


RULE = Rule(
    plugin="Devices",
    reason=f"node(s) had enough {DEVICE_MILLI} in all, but not on single devices",
    applies=lambda spec: device_milli(spec.requests) > 0,
    holds=_holds,
    after_room=True,
    without=_holds_without,
)
