"""What the nodes of a cluster offer, and amounts by resource in one order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.framework import Amounts
from eclectus.policies.shared.portions import Vector


class Offered(NamedTuple):
    """The resources that nodes offer, and how much of each all nodes have."""

    resources: tuple[str, ...] = ()
    capacity: Vector = ()

    def vector(self, amounts: Iterable[tuple[str, int]]) -> Vector:
        """Amounts in the order of `resources`; of resources that no node offers nothing."""
        found = dict(amounts)
        return tuple(float(found.get(name, 0)) for name in self.resources)

    def amounts(self, vector: Vector) -> Amounts:
        """The same back, in whole numbers and without those that are 0."""
        named = ((name, int(amount)) for name, amount in zip(self.resources, vector, strict=True))
        return tuple(sorted((name, amount) for name, amount in named if amount))


def offered_by(cluster: Cluster) -> Offered:
    """What all nodes of a cluster offer together. Places for pods are left out: nobody plans by them."""
    sums = cluster.allocatable.sum(axis=0)
    names = tuple(name for name, column in cluster.columns.items() if sums[column] > 0 and name != PODS)
    return Offered(names, tuple(float(sums[cluster.columns[name]]) for name in names))
