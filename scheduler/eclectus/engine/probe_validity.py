"""Probes that hold no room, and which of them have lost the room that they stand for.

A probe finds out how fast a node does a task, but asks for nothing, so that no task waits for it. Its time
is that of a task only while a task could have had its place. Once that is taken, what it shows is its
neighbours' doing: it counts as gone, as in the simulator (sim/probes.py), where it is killed that moment.
"""

from __future__ import annotations

from collections import defaultdict

from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Amounts, Task


class ProbeValidity:
    """Probes that stand for room, from the first sight of them on their nodes until they are gone."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: dict[str, str] = {}  # uid of a probe -> its node
        self._on: dict[str, dict[str, Amounts]] = defaultdict(dict)  # node -> uid -> what it stands for
        self._invalid: set[str] = set()

    def __contains__(self, uid: str) -> bool:
        """Whether this is a probe that has lost its room; it never gets it back."""
        return uid in self._invalid

    def observe(self, task: Task) -> list[str]:
        """A pod was seen on its node and is counted there; the probes, by uid, that this costs their room."""
        if task.notional_requests and task.uid not in self._nodes:
            self._nodes[task.uid] = task.node
            self._on[task.node][task.uid] = task.notional_requests
        if task.node not in self._on:
            return []
        lost = [
            uid
            for uid, room in self._on[task.node].items()
            if uid not in self._invalid and not self._is_left(task.node, room)
        ]
        self._invalid.update(lost)
        return lost

    def remove(self, uid: str) -> None:
        """A pod is gone; perhaps it was no probe."""
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        self._invalid.discard(uid)
        del self._on[node][uid]
        if not self._on[node]:
            del self._on[node]

    def _is_left(self, node: str, room: Amounts) -> bool:
        row = self._cluster.rows.get(node)
        if row is None:
            return True  # nothing is known of it, and nothing is learned either
        wanted = self._cluster.vector(room)
        left = self._cluster.allocatable[row] - self._cluster.used[row]
        return bool((left >= wanted)[wanted > 0].all())
