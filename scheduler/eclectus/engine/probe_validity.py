"""Which probes with zero requests still measure what a task would need, and which are to be ended.

Such a probe requests nothing, so that no task waits for it. Its time equals that of a task only while a
task could have its place, that is, while its notional requests are free on the node. Once other pods have
taken that room, the probe measures its neighbours. It then counts as gone: no sample, no slot, no sign of
life. The bind that takes the room also ends it, so that the two share the node as shortly as possible. In
the simulator such a probe is killed at that moment (sim/world/probes.py).
"""

from __future__ import annotations

from collections import defaultdict

from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Task


class ProbeValidity:
    """Probes with notional requests, from when they are first seen on their nodes until they are gone."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: dict[str, str] = {}  # uid of a probe -> its node
        self._on: dict[str, dict[str, Task]] = defaultdict(dict)  # node -> uid -> probe
        self._invalid: set[str] = set()
        self._displaced: set[str] = set()

    def __contains__(self, uid: str) -> bool:
        """Whether this is a probe that has lost its room; it stays invalid until it is gone."""
        return uid in self._invalid

    def observe(self, task: Task) -> list[str]:
        """A pod was seen on its node and is counted there; the uids of the probes that lose their room."""
        if task.notional_requests and task.uid not in self._nodes:
            self._nodes[task.uid] = task.node
            self._on[task.node][task.uid] = task
        if task.node not in self._on:
            return []
        lost = [
            uid
            for uid, probe in self._on[task.node].items()
            if uid not in self._invalid and not self._has_room(probe)
        ]
        self._invalid.update(lost)
        return lost

    def take_displaced(self, node: str) -> list[Task]:
        """The probes for which a pod placed on this node has left no room, each of them once."""
        displaced = [
            probe
            for uid, probe in self._on.get(node, {}).items()
            if uid not in self._displaced and not self._has_room(probe)
        ]
        self._displaced.update(probe.uid for probe in displaced)
        return displaced

    def remove(self, uid: str) -> None:
        """A pod is gone; it need not be a probe."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        self._invalid.discard(uid)
        self._displaced.discard(uid)
        del self._on[node][uid]
        if not self._on[node]:
            del self._on[node]

    def _has_room(self, probe: Task) -> bool:
        row = self._cluster.rows.get(probe.node)
        if row is None:
            return True  # an unknown node; nothing is learned of it either
        wanted = self._cluster.vector(probe.notional_requests)
        free = self._cluster.allocatable[row] - self._cluster.used[row]
        return bool((free >= wanted)[wanted > 0].all())
