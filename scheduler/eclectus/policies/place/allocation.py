"""Spread or pack by allocated resources: kube-scheduler's NodeResourcesFit scores.

LeastAllocated (the Kubernetes default) takes the node with the largest mean free share of cpu and memory,
MostAllocated the one with the smallest. As in kube-scheduler, a container without requests counts as 100m and
200 MiB.

Departures:
- of nodes with equal scores the first is taken. With `ties: random` one is drawn, as there; simulations of
  kube-scheduler on equal nodes need it, because a fixed choice fills them in one order, and those that later
  tasks need would be full sooner, or later, than in a cluster;
- scores are not rounded to integers, so fewer of them are equal;
- preferences weigh 5 against a score of weight 1, which is the sum of kube-scheduler's default weights for
  TaintToleration (3) and NodeAffinity (2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import View
from eclectus.framework.ranking import Ranking
from eclectus.model.settings import Setting
from eclectus.policies.shared.by_cost import ByCost

PREFERENCE_WEIGHT = 5.0


@dataclass(eq=False)
class LeastAllocated(ByCost):
    """The node with the largest free share of cpu and memory."""

    sign = 1.0

    ties: Annotated[
        Literal["first", "random"],
        Setting(
            "which of the nodes with equal scores: the first, or any, as kube-scheduler does",
            why="what was recorded before this setting existed replays unchanged",
        ),
    ] = "first"

    def choose(self, view: View, ranking: Ranking) -> tuple[int, float] | None:
        """One of the nodes of least cost."""
        return ranking.best() if self.ties == "first" else ranking.draw_best(view.rng)

    def cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Rises (MostAllocated: falls) with the allocated share; inf where the task does not fit."""
        cluster = task_class.cluster
        columns = [cluster.columns["cpu"], cluster.columns["memory"]]
        allocatable = cluster.allocatable.take(rows, axis=0).take(columns, axis=1)
        held = cluster.scored[rows] + task_class.spec.score_requests
        share = np.where(allocatable > 0, np.minimum(held / allocatable, 1.0), 1.0).mean(axis=1)
        cost = 1.0 + self.sign * share + PREFERENCE_WEIGHT * (1.0 - task_class.preference_score[rows])
        return np.where(task_class.fits_now[rows], cost, np.inf)


@dataclass(eq=False)
class MostAllocated(LeastAllocated):
    """The node with the smallest free share of cpu and memory that has room."""

    sign = -1.0
