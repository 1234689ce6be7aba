"""NodePorts: two pods cannot take the same port of a node on addresses that overlap."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.host_ports import HostPorts
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import Spec, Task


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    asked = rows.tolist()
    free = set(asked)
    for wanted in spec.host_ports:
        for taken in cluster.host_ports.conflicting(wanted):  # the smaller of the two is gone through
            if len(taken) < len(free):
                free.difference_update(taken)
            else:
                free = {row for row in free if row not in taken}
    return np.fromiter((row in free for row in asked), dtype=bool, count=len(asked))


def _holds_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    freed = HostPorts()
    for pod in removed:
        for port in pod.spec.host_ports:
            freed.hold(port, row)
    held = cluster.host_ports
    return all(held.count(wanted, row) <= freed.count(wanted, row) for wanted in spec.host_ports)


RULE = Rule(
    plugin="NodePorts",
    reason="node(s) didn't have free ports for the requested pod ports",
    applies=lambda spec: bool(spec.host_ports),
    holds=_holds,
    without=_holds_without,
)
