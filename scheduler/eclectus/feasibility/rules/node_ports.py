"""NodePorts: two pods cannot take the same port of a node on addresses that overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.rules.rule import Mask, Rule
from eclectus.model.objects import HostPort, Spec, Task

_ANY = "0.0.0.0"  # noqa: S104 — Kubernetes' word for any address, nothing is bound to it


def _conflicting(cluster: Cluster, wanted: HostPort) -> Iterator[HostPort]:
    """Ports that conflict with the wanted one; all that are in use are among them."""
    if wanted.ip != _ANY:
        yield from (HostPort(wanted.port, wanted.protocol, ip) for ip in (wanted.ip, _ANY))
        return
    for port in cluster.port_rows:
        if (port.port, port.protocol) == (wanted.port, wanted.protocol):
            yield port


def _holds(cluster: Cluster, spec: Spec, rows: Rows) -> Mask:
    conflicts = [port for wanted in spec.host_ports for port in _conflicting(cluster, wanted)]
    taken = [cluster.port_rows[port] for port in conflicts if port in cluster.port_rows]
    if not taken:
        return np.ones(len(rows), dtype=bool)
    free = (not any(row in used_on for used_on in taken) for row in rows.tolist())
    return np.fromiter(free, dtype=bool, count=len(rows))  # O(rows asked), not O(ports in use)


def _holds_without(cluster: Cluster, spec: Spec, row: int, removed: Collection[Task]) -> bool:
    freed = Counter(port for pod in removed for port in pod.spec.host_ports)
    conflicts = (port for wanted in spec.host_ports for port in _conflicting(cluster, wanted))
    return all(cluster.port_rows.get(port, {}).get(row, 0) <= freed[port] for port in conflicts)


RULE = Rule(
    plugin="NodePorts",
    reason="node(s) didn't have free ports for the requested pod ports",
    applies=lambda spec: bool(spec.host_ports),
    holds=_holds,
    without=_holds_without,
)
