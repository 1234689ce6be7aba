"""What a policy may read: arrays over nodes, classes, speeds, node queues, time and seeded randomness."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from random import Random

import numpy as np

from eclectus.cluster.nodes import Cluster
from eclectus.cluster.shares import GroupShares
from eclectus.feasibility.class_cache import ClassCache
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.job_work import JobWork
from eclectus.framework.learner import Learn, Speeds
from eclectus.framework.ranking import Cost, Ranking
from eclectus.model.objects import Task
from eclectus.model.reservation import Reservation

PlacedPods = Callable[[int], Iterable[tuple[Task, float]]]


def _no_pods(_row: int) -> Iterable[tuple[Task, float]]:
    return ()


class View:
    """Everything that a policy may read. The engine updates it; a policy writes nothing.

    `now`: the time of the step, seconds.
    `node_queues`: row -> the reservations in its node queue, in order of arrival.
    `deferred_since`: uid -> since when the task has been deferred in every cycle, seconds.
    `placed_pods(row)`: the pods that hold room there, assumed or bound, and since when, seconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        learn: Learn,
        rng: Random,
        *,
        node_queues: Mapping[int, Sequence[Reservation]] | None = None,
        deferred_since: Mapping[str, float] | None = None,
        placed_pods: PlacedPods = _no_pods,
        shares_by_policy: Mapping[int, GroupShares] | None = None,
        job_work: JobWork | None = None,
    ) -> None:
        self.cluster, self.learn, self.rng = cluster, learn, rng
        self.classes = ClassCache(cluster)
        self.now = 0.0
        self.node_queues: Mapping[int, Sequence[Reservation]] = {} if node_queues is None else node_queues
        self.deferred_since: Mapping[str, float] = {} if deferred_since is None else deferred_since
        self.placed_pods = placed_pods
        self._shares: Mapping[int, GroupShares] = {} if shares_by_policy is None else shares_by_policy
        self._job_work = job_work
        self._rankings: dict[tuple[TaskClass, object], Ranking] = {}

    def with_cluster(self, cluster: Cluster, shares_by_policy: Mapping[int, GroupShares]) -> View:
        """The same view of another state of the cluster: for policies that see changes with a delay."""
        return View(
            cluster,
            self.learn,
            self.rng,
            node_queues=self.node_queues,
            deferred_since=self.deferred_since,
            placed_pods=self.placed_pods,
            shares_by_policy=shares_by_policy,
            job_work=self._job_work,
        )

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

    def ranking(self, task_class: TaskClass, cost: Cost, owner: object) -> Ranking:
        """The nodes of a class ranked by a policy's cost, brought up to date for the rows that changed."""
        key = (task_class, owner)
        ranking = self._rankings.get(key)
        if ranking is None:
            if len(self._rankings) >= self.classes.max_classes:
                self._rankings.clear()
            ranking = self._rankings[key] = Ranking(task_class, cost)
        ranking.refresh(self.learn.speeds(task_class.workload).epoch)
        return ranking
