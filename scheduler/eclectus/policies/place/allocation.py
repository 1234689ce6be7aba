"""Spread or pack by allocated resources: kube-scheduler's NodeResourcesFit scores.

LeastAllocated (the Kubernetes default) takes the node with the largest mean free share of cpu and memory,
MostAllocated the one with the smallest, and RequestedToCapacityRatio the one whose shares score most on a
line of given points. As in kube-scheduler, the mean is weighted, and a container without requests counts as
100m and 200 MiB.

Departures:
- of nodes with equal scores the first is taken. With `ties: random` one is drawn, as there; simulations of
  kube-scheduler on equal nodes need it, because a fixed choice fills them in one order, and those that later
  tasks need would be full sooner, or later, than in a cluster;
- scores are not rounded to integers, so fewer of them are equal;
- preferences weigh 5 against a score of weight 1, which is the sum of kube-scheduler's default weights for
  TaintToleration (3) and NodeAffinity (2).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from eclectus.framework import (
    REQUIRED,
    AnyRows,
    Floats,
    Ranking,
    Rows,
    SettingsError,
    TaskClass,
    View,
    Weigh,
    setting,
)
from eclectus.model.errors import Problems
from eclectus.model.objects import amount_of
from eclectus.policies.shared import ByCost

SCORED = ("cpu", "memory")  # a container without requests counts with Kubernetes' defaults for scores
_OF_EVERY_POD = "ephemeral-storage"  # other resources count only for pods that request them


def allocated_shares(
    task_class: TaskClass, rows: Rows, weights: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """The allocated share of each resource that counts, with one more task, 0..1, and the resources' weights.

    Shapes [len(rows), resources] and [resources]. A node that offers none of a resource counts as full.
    """
    cluster, spec = task_class.cluster, task_class.spec
    counted = (_OF_EVERY_POD, *(name for name, _ in spec.requests))
    others = [name for name in weights if name in counted and name in cluster.columns and name not in SCORED]
    columns = [cluster.columns[name] for name in (*SCORED, *others)]
    allocatable = cluster.allocatable.take(rows, axis=0).take(columns, axis=1)
    held = cluster.scored[rows] + spec.score_requests
    if others:
        used = cluster.used.take(rows, axis=0).take(columns[len(SCORED) :], axis=1)
        held = np.hstack([held, used + [amount_of(spec.requests, name) for name in others]])
    shares = np.where(allocatable > 0, np.minimum(held / allocatable, 1.0), 1.0)
    return shares, np.array([weights.get(name, 0.0) for name in (*SCORED, *others)])


PREFERENCE_WEIGHT = 5.0


@dataclass(eq=False)
class LeastAllocated(ByCost):
    """The node with the largest free share of cpu and memory."""

    sign = 1.0

    ties: Literal["first", "random"] = setting(
        "first",
        "which of the nodes with equal scores: the first, or any, as kube-scheduler does",
        why="what was recorded before this setting existed replays unchanged",
    )
    resources: dict[str, int] = setting(
        {"cpu": 1, "memory": 1},
        "weight of each resource that counts; extended ones count for pods that request them",
        why="kube-scheduler's",
        least=1,
        most=100,
    )

    def __post_init__(self) -> None:
        if not self.resources:
            raise SettingsError("resources", "must name a resource with its weight, such as cpu: 1")

    def choose(self, view: View, ranking: Ranking) -> tuple[int, float] | None:
        """One of the nodes of least cost."""
        return ranking.best() if self.ties == "first" else ranking.draw_best(view.rng)

    @property
    def weigh(self) -> Weigh:
        """Preferences weigh more than shares."""
        return _weigh

    def cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Rises (MostAllocated: falls) with the allocated share; inf where the task does not fit."""
        of_shares = self._cost_of(*allocated_shares(task_class, rows, self.resources))
        return np.where(task_class.fits_now[rows], 1.0 + of_shares, np.inf)

    def _cost_of(self, shares: Floats, weights: Floats) -> Floats:
        """The weighted mean of the shares, -1..1; 0 for a pod that requests nothing that counts."""
        mean: Floats = (shares * weights).sum(axis=1) / (weights.sum() or 1.0)
        return self.sign * mean


def _weigh(task_class: TaskClass, cost: Floats, rows: AnyRows) -> Floats:
    weighed: Floats = cost + task_class.by_preference(_unmet, rows)
    return weighed


def _unmet(score: Floats) -> Floats:
    return PREFERENCE_WEIGHT * (1.0 - score)


@dataclass(eq=False)
class MostAllocated(LeastAllocated):
    """The node with the smallest free share of cpu and memory that has room."""

    sign = -1.0


@dataclass(frozen=True)
class ShapePoint:
    """A point of the line from utilization to score."""

    utilization: int = setting(REQUIRED, "share of a resource that is allocated", unit="%", least=0, most=100)
    score: int = setting(REQUIRED, "how much such a node is wanted", least=0, most=10)


@dataclass(eq=False)
class RequestedToCapacityRatio(LeastAllocated):
    """The node whose allocated shares score most, by a line through given points.

    As in kube-scheduler, a resource with score 0 is left out of a node's mean.
    """

    shape: tuple[ShapePoint, ...] = setting(
        (ShapePoint(0, 0), ShapePoint(100, 10)),
        "points of the line from utilization (0 to 100 %, rising) to score (0 to 10); straight between "
        "them, level beyond them",
        why="packs: the fuller a node, the more it is wanted",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        problems = Problems()
        if not self.shape:
            problems.add("shape", "must have a point, such as {utilization: 100, score: 10}")
        for at, (one, other) in enumerate(zip(self.shape, self.shape[1:], strict=False), start=1):
            if other.utilization <= one.utilization:
                problem = f"must be more than {one.utilization}, that of the point before it"
                problems.add(f"shape[{at}].utilization", problem)
        problems.raise_any()
        self._utilization = [each.utilization / 100 for each in self.shape]
        self._score = [each.score / 10 for each in self.shape]

    def _cost_of(self, shares: Floats, weights: Floats) -> Floats:
        scores = np.interp(shares, self._utilization, self._score)
        counted = (scores > 0) * weights
        total = counted.sum(axis=1)
        mean: Floats = np.zeros(len(shares))
        np.divide((scores * counted).sum(axis=1), total, out=mean, where=total > 0)
        return -mean
