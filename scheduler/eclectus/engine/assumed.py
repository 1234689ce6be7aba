"""Who holds room where: bound pods, pods being bound, and foreign pods with room promised to them.

A bind is assumed at once and forgotten when refused. What stands here is what the API server says or
will say; a pod that is bound never comes unbound, so an event that says so is merely late.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from eclectus.cluster.nodes import Cluster
from eclectus.cluster.shares import GroupShares
from eclectus.model.objects import Task


class PlacedPods:
    """Every pod that holds room, by uid, and the node it holds it on, known or not yet known."""

    def __init__(self, cluster: Cluster, usages: Iterable[GroupShares] = ()) -> None:
        self._cluster, self._usages = cluster, tuple(usages)
        self._on: dict[str, dict[str, None]] = defaultdict(dict)  # node name -> uids, in order of coming
        # By uid. Read these, do not write them:
        self.placed: dict[str, tuple[Task, str, float]] = {}  # as it was counted, node name, since when
        self.assumed: dict[str, str] = {}  # node of a bind not yet answered

    def node_of(self, uid: str) -> str:
        """The node a pod holds room on; empty if none."""
        held = self.placed.get(uid)
        return held[1] if held else ""

    def is_bound(self, uid: str) -> bool:
        """Whether the API server has shown the pod on a node, not merely promised or asked for."""
        held = self.placed.get(uid)
        return held is not None and bool(held[0].node)

    def on_row(self, row: int) -> Iterator[tuple[Task, float]]:
        """Who holds room on a row, and since when in seconds: since it started, as far as that is known."""
        for uid in self._on.get(self._cluster.names[row], ()):
            task, _, since = self.placed[uid]
            yield task, since if task.started is None else task.started

    def set(self, task: Task, node: str, now: float) -> None:
        """The pod holds room on this node, as given; whatever it held before is given back."""
        uid, since = task.uid, now
        held = self.placed.get(uid)
        if held is not None:
            before, where, at = held
            if where == node:
                if (
                    before.holding == task.holding
                    and before.spec == task.spec
                    and task.devices in ((), before.devices)
                ):
                    if task.started != before.started:
                        self.placed[uid] = (task, node, at)
                    return
                since = at
            self.remove(uid)
        self.placed[uid] = (task, node, since)
        self._on[node][uid] = None
        for usage in self._usages:
            usage.hold(task)
        row = self._cluster.rows.get(node)
        if row is not None:
            self._cluster.hold(row, task)

    def remove(self, uid: str) -> None:
        """The pod holds nothing any more."""
        held = self.placed.pop(uid, None)
        if held is None:
            return
        task, node, _ = held
        for usage in self._usages:
            usage.release(uid)
        on = self._on[node]
        del on[uid]
        if not on:
            del self._on[node]
        row = self._cluster.rows.get(node)
        if row is not None:
            self._cluster.release(row, task)

    def assume(self, task: Task, node: str, now: float) -> None:
        """Count a bind before it is answered."""
        self.set(task, node, now)
        self.assumed[task.uid] = node

    def confirm(self, uid: str) -> bool:
        """The bind went through; whether one was under way."""
        return self.assumed.pop(uid, None) is not None

    def forget(self, uid: str, node: str) -> bool:
        """The bind of this pod to this node was refused; False when that is no longer what we assume."""
        if self.assumed.get(uid) != node:
            return False
        del self.assumed[uid]
        self.remove(uid)
        return True

    def add_node(self, node: str) -> None:
        """Count on a new row what was known to be on that node."""
        row = self._cluster.rows[node]
        for uid in self._on.get(node, ()):
            self._cluster.hold(row, self.placed[uid][0])

    def remove_node(self, node: str) -> None:
        """Give back the row's room before the row goes; the pods stay known until they are gone."""
        row = self._cluster.rows[node]
        for uid in self._on.get(node, ()):
            self._cluster.release(row, self.placed[uid][0])
