"""The shares of DAG jobs and of the pods beside them, and amounts by resource in one order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import log2
from typing import NamedTuple

from eclectus.accounts.group_shares import GroupShares
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.framework import Amounts, Task

Vector = tuple[float, ...]
"""Amounts by resource, in an order that its owner knows."""


def used_part(usage: Vector, share: Vector) -> float:
    """How much of a share is used: the largest part of any resource that the share has."""
    return max((used / most for used, most in zip(usage, share, strict=True) if most), default=0.0)


def added(one: Vector, other: Vector) -> Vector:
    """The sum of two vectors."""
    return tuple(map(float.__add__, one, other))


def magnitude(amount: float) -> int:
    """Equal for amounts that differ by less than a fifth or so: shares follow these, and not every pod."""
    return round(4.0 * log2(1.0 + amount))


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
    """What all nodes of a cluster offer together. Places for pods are left out: no plan needs them."""
    sums = cluster.allocatable.sum(axis=0)
    names = tuple(name for name, column in cluster.columns.items() if sums[column] > 0 and name != PODS)
    return Offered(names, tuple(float(sums[cluster.columns[name]]) for name in names))


# Pods that belong to no DAG job: those of a namespace share as one job that lends nothing.
#
# Services and probes do not share; what they hold is not there to be shared.

SERVICES = "-"  # the path of pods that take part in no sharing; no namespace has this name


def path_of(task: Task) -> str:
    """The path by which a task is counted: `namespace/job`, without a job for pods that belong to none."""
    if task.spec.long_running or task.spec.probe:
        return SERVICES
    return f"{task.namespace}/{task.job if task.stage else ''}"


class PodsOfNamespace:
    """What they wait for and hold, and their share."""

    def __init__(self, waiting: Vector, usage: Vector, share: Vector) -> None:
        self.waiting, self.usage, self.share = waiting, usage, share


class PlainPods:
    """By path, `namespace/`."""

    def __init__(self) -> None:
        self.by_path: dict[str, PodsOfNamespace] = {}
        self._magnitudes: object = None  # of what they wait for and hold, and of what services hold

    def count(self, shares: GroupShares, offered: Offered) -> tuple[list[str], bool]:
        """Count them anew. The paths whose amounts have changed, and whether by enough to share again."""
        none, before, changed = (0.0,) * len(offered.resources), self.by_path, list[str]()
        self.by_path = {}
        for path in sorted(each for each in shares.paths() if each.endswith("/") and each != SERVICES):
            waiting = offered.vector(shares.waiting(path).items())
            usage = offered.vector(shares.held(path).items())
            old = before.get(path)
            share = old.share if old is not None and len(old.share) == len(none) else none
            self.by_path[path] = PodsOfNamespace(waiting, usage, share)
            if old is None or (old.waiting, old.usage) != (waiting, usage):
                changed.append(path)
        magnitudes = (tuple(self._each_magnitude()), _of_services(shares, offered))
        differs, self._magnitudes = magnitudes != self._magnitudes, magnitudes
        return changed, differs

    def _each_magnitude(self) -> Iterator[tuple[object, ...]]:
        for path, each in self.by_path.items():
            yield (path, *map(magnitude, added(each.waiting, each.usage)))


def _of_services(shares: GroupShares, offered: Offered) -> tuple[int, ...]:
    held = shares.held(SERVICES)
    return tuple(magnitude(held.get(name, 0)) for name in offered.resources)
