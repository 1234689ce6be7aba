"""Keeps `Cluster.volumes.reach` up to date: where the unbound claims of pods that wait can get volumes.

What changes between scheduling cycles is logged as a change of the nodes' shape, because those nodes become
feasible or infeasible. What a bind changes within a cycle is logged as usage first: policies keep what is
feasible for as long as a cycle lasts.
"""

from __future__ import annotations

import numpy as np

from eclectus.cluster.nodes import Cluster
from eclectus.cluster.volumes.reach import Reach
from eclectus.cluster.volumes.storage import Moved
from eclectus.feasibility.volumes.matching import VolumeMatching
from eclectus.model.objects import UnboundClaim

MAX_UNUSED = 64  # kept although no pod waits for them: pods of a StatefulSet come one after the other

Unbound = tuple[UnboundClaim, ...]


class Reaches:
    """A number for each different tuple of claims; a number is never given twice."""

    def __init__(self, cluster: Cluster) -> None:
        self.matching = VolumeMatching(cluster)
        self._cluster = cluster
        self._numbers: dict[Unbound, int] = {}
        self._pods: dict[int, int] = {}  # number -> pods that wait
        self._unused: dict[int, None] = {}  # numbers for which no pod waits, the eldest first
        self._next = 0
        self._stale: set[int] = set()  # numbers of masks that are to be evaluated again
        self._shape = -1  # cursor of the nodes as they were last seen
        self.evaluated = 0  # masks, in all; each is a computation over all nodes

    def __len__(self) -> int:
        """Masks that are kept."""
        return len(self._cluster.volumes.reach)

    def hold(self, claims: Unbound) -> int:
        """A pod with these claims waits; returns the number under which the cluster keeps its reach."""
        number = self._numbers.get(claims)
        if number is None:
            self._follow()
            number = self._numbers[claims] = self._next
            self._next += 1
            self._cluster.volumes.reach[number] = Reach(claims, self.matching.where(claims))
        elif number in self._unused:
            del self._unused[number]
            self._catch_up(number)
        self._pods[number] = self._pods.get(number, 0) + 1
        return number

    def release(self, number: int) -> None:
        """One pod fewer waits with these claims."""
        self._pods[number] -= 1
        if self._pods[number]:
            return
        del self._pods[number]
        self._unused[number] = None
        if len(self._unused) > MAX_UNUSED:
            eldest = next(iter(self._unused))
            del self._unused[eldest]
            del self._numbers[self._cluster.volumes.reach.pop(eldest).claims]
            self._stale.discard(eldest)

    def follow_events(self) -> None:
        """After the events of a step: which nodes are feasible now by the volumes that there are."""
        self.follow_bind()  # a bind of the last cycle may have been refused
        for reach in self._cluster.volumes.reach.values():
            self._make_known(reach)

    def follow_bind(self) -> None:
        """After volumes have changed, or one has been chosen within a cycle: where pods fit now.

        What no pod waits for stays as it was until one does: free storage may change many times a second.
        """
        self._follow()
        for number in sorted(self._stale & self._pods.keys()):
            self._evaluate(number)

    def _catch_up(self, number: int) -> None:
        """A pod waits for this again, after a time in which none has."""
        self._follow()
        if number in self._stale:
            self._evaluate(number)
            self._make_known(self._cluster.volumes.reach[number])

    def _evaluate(self, number: int) -> None:
        self._stale.discard(number)
        self.evaluated += 1
        reach = self._cluster.volumes.reach[number]
        before, reach.now = reach.now, self.matching.where(reach.claims)
        for row in np.flatnonzero(reach.now.gets != before.gets).tolist():
            self._cluster.usage.record(row)

    def _make_known(self, reach: Reach) -> None:
        if reach.now is reach.known:
            return
        shape = self._cluster.shape
        for row in np.flatnonzero(reach.now.gets != reach.known.gets).tolist():
            shape.record(row)
        reach.known = reach.now
        self._shape = shape.head  # what has just been recorded is no change of a node

    def _follow(self) -> None:
        """Find out which masks are to be evaluated again; the matching knows of all changes from now on."""
        moved, reach = self._cluster.volumes.storage.take_moved(), self._cluster.volumes.reach
        self.matching.follow_volumes(moved.classes, moved.volumes)
        if self._shape != self._cluster.shape.head:
            self._shape = self._cluster.shape.head
            self.matching.forget_nodes()
            self._stale.update(reach)
        elif any(moved):
            self._stale.update(number for number, each in reach.items() if _concerns(moved, each))


def _concerns(moved: Moved, reach: Reach) -> bool:
    return any(
        claim.storage_class in moved.classes or claim.volume in moved.volumes or claim.shared in moved.claims
        for claim in reach.claims
    )
