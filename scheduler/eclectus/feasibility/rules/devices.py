"""Shared devices: a share must find one device with so much left, whole ones must be untouched.

No rule of kube-scheduler, which knows no shares: it is the filter of the plug-ins that add them to it
(Open-Gpu-Share and others). Room in all is judged like that of every resource, so this rule speaks only
where it is not enough.
"""

from __future__ import annotations

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import DEVICE_MILLI, Spec, amount_of


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    if cluster.devices is None:
        return np.zeros(len(rows), dtype=bool)
    return cluster.devices.has_room(rows, amount_of(spec.requests, DEVICE_MILLI))


RULE = Rule(
    plugin="Devices",
    reason=f"node(s) had enough {DEVICE_MILLI} in all, but not on single devices",
    applies=lambda spec: amount_of(spec.requests, DEVICE_MILLI) > 0,
    holds=_holds,
    after_room=True,
)
