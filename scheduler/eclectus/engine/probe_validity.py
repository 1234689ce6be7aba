"""Which probes with zero requests still measure what a task would need.

Such a probe requests nothing, so that no task waits for it. Its time equals that of a task only while a
task could have its place, that is, while its notional requests are free on the node. Once other pods have
taken that room, the probe measures its neighbours. It then counts as gone: no sample, no slot, no sign of
life. In the simulator such a probe is killed at that moment (sim/world/probes.py).
"""

from __future__ import annotations

from collections import defaultdict

from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Amounts, Task


class ProbeValidity:
    """Probes with notional requests, from when they are first seen on their nodes until they are gone."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: dict[str, str] = {}  # uid of a probe -> its node
        self._on: dict[str, dict[str, Amounts]] = defaultdict(dict)  # node -> uid -> notional requests
        self._invalid: set[str] = set()

    def __contains__(self, uid: str) -> bool:
        """Whether this is a probe that has lost its room; it stays invalid until it is gone."""
        return uid in self._invalid

    def observe(self, task: Task) -> list[str]:
        """A pod was seen on its node and is counted there; the uids of the probes that lose their room."""
        if task.notional_requests and task.uid not in self._nodes:
            self._nodes[task.uid] = task.node
            self._on[task.node][task.uid] = task.notional_requests
        if task.node not in self._on:
            return []
        lost = [
            uid
            for uid, requests in self._on[task.node].items()
            if uid not in self._invalid and not self._is_free(task.node, requests)
        ]
        self._invalid.update(lost)
        return lost

    def remove(self, uid: str) -> None:
        """A pod is gone; it need not be a probe."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        self._invalid.discard(uid)
        del self._on[node][uid]
        if not self._on[node]:
            del self._on[node]

    def _is_free(self, node: str, requests: Amounts) -> bool:
        row = self._cluster.rows.get(node)
        if row is None:
            return True  # an unknown node; nothing is learned of it either
        wanted = self._cluster.vector(requests)
        free = self._cluster.allocatable[row] - self._cluster.used[row]
        return bool((free >= wanted)[wanted > 0].all())
