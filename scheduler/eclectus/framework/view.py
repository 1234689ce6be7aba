"""What a policy may read: arrays over nodes, classes, speeds, node queues, time and seeded randomness."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from math import inf
from random import Random
from typing import Protocol

import numpy as np

from eclectus.cluster.budgets import Budgets
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.shares import GroupShares
from eclectus.feasibility.class_cache import ClassCache
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.job_work import JobWork
from eclectus.framework.learner import Learn, Speeds
from eclectus.framework.ranking import Cost, Ranking
from eclectus.model.objects import Task
from eclectus.model.reservation import Reservation


class PlacedPods(Protocol):
    """What is known of the pods that hold room on nodes."""

    def on_row(self, row: int) -> Iterable[tuple[Task, float]]:
        """The pods that hold room on a row, and since when, seconds."""

    def is_nominated(self, uid: str) -> bool:
        """Whether room is held for a pod that is neither bound nor assumed."""

    @property
    def lowest_priority(self) -> float:
        """The lowest priority of any pod that holds room; inf if none does."""


class _NoPods:
    lowest_priority = inf

    def on_row(self, row: int) -> Iterable[tuple[Task, float]]:
        del row
        return ()

    def is_nominated(self, uid: str) -> bool:
        del uid
        return False


class View:
    """Everything that a policy may read. The engine updates it; a policy writes nothing.

    `now`: the time of the step, seconds.
    `node_queues`: row -> the reservations in its node queue, in order of arrival.
    `deferred_since`: uid -> since when the task has been deferred in every cycle, seconds.
    `placed_pods(row)`: the pods that hold room there, bound, assumed or nominated, and since when, seconds;
    `is_nominated(uid)`, `lowest_priority`: of such pods.
    `evicted`: pods of which the eviction was sent, as long as they exist. `budgets`: PodDisruptionBudgets.
    """

    def __init__(
        self,
        cluster: Cluster,
        learn: Learn,
        rng: Random,
        *,
        node_queues: Mapping[int, Sequence[Reservation]] | None = None,
        deferred_since: Mapping[str, float] | None = None,
        placed: PlacedPods | None = None,
        evicted: Container[str] = (),
        budgets: Budgets | None = None,
        shares_by_policy: Mapping[int, GroupShares] | None = None,
        job_work: JobWork | None = None,
    ) -> None:
        self.cluster, self.learn, self.rng = cluster, learn, rng
        self.classes = ClassCache(cluster)
        self.now = 0.0
        self.node_queues: Mapping[int, Sequence[Reservation]] = {} if node_queues is None else node_queues
        self.deferred_since: Mapping[str, float] = {} if deferred_since is None else deferred_since
        self._placed: PlacedPods = _NoPods() if placed is None else placed
        self.placed_pods, self.is_nominated = self._placed.on_row, self._placed.is_nominated
        self.evicted, self.budgets = evicted, Budgets() if budgets is None else budgets
        self._shares: Mapping[int, GroupShares] = {} if shares_by_policy is None else shares_by_policy
        self._job_work = job_work

    def with_cluster(self, cluster: Cluster, shares_by_policy: Mapping[int, GroupShares]) -> View:
        """The same view of another state of the cluster: for policies that see changes with a delay."""
        return View(
            cluster,
            self.learn,
            self.rng,
            node_queues=self.node_queues,
            deferred_since=self.deferred_since,
            placed=self._placed,
            evicted=self.evicted,
            budgets=self.budgets,
            shares_by_policy=shares_by_policy,
            job_work=self._job_work,
        )

    @property
    def lowest_priority(self) -> float:
        """The lowest priority of any pod that holds room on a node; inf if none does."""
        return self._placed.lowest_priority

    def task_class(self, task: Task) -> TaskClass:
        """The class of the task, up to date."""
        return self.classes.current(task.spec, task.workload)

    def speeds(self, task_class: TaskClass) -> Speeds:
        """The learned speed of every node for the work of this class; for probes all nodes are equal.

        Otherwise no probe would go to a node that counts as dead, and nothing would find it alive again.
        """
        found = self.learn.speeds(task_class.workload)
        return Speeds(np.ones_like(found.rate), 1.0, found.epoch) if task_class.spec.probe else found

    def shares(self, policy: object) -> GroupShares:
        """What the groups of this policy's `counted_by` hold. Raises KeyError where it has no account."""
        return self._shares[id(policy)]

    def work_left(self, task: Task) -> float:
        """Work of the task's job that has not begun, seconds; inf where it is unknown."""
        return inf if self._job_work is None else self._job_work.left(task)

    def ranking(self, task_class: TaskClass, cost: Cost, owner: object, epoch: float = 0.0) -> Ranking:
        """The nodes of a class ranked by a policy's cost, brought up to date for the rows that changed.

        A class has one ranking for each owner. `epoch`: what the cost depends on beside the class and the
        speeds; with another one all costs are computed again.
        """
        ranking: Ranking | None = task_class.derived.get(owner)
        if ranking is None or ranking.epoch != epoch:
            ranking = task_class.derived[owner] = Ranking(task_class, cost, epoch)
        ranking.refresh(self.learn.speeds(task_class.workload).epoch)
        return ranking
