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


class View:
    """All that a policy may read: arrays over nodes, classes, speeds, the time and a seeded chance."""

    def __init__(self, cluster: Cluster, learn: Learn, rng: Random) -> None:
        self.cluster, self.learn, self.rng = cluster, learn, rng
        self.classes = ClassCache(cluster)
        self.now = 0.0
        self.node_queues: Mapping[int, Sequence[Reservation]] = {}  # row -> its line, in order of joining
        self.deferred_since: Mapping[
            str, float
        ] = {}  # uid -> since when it has been planned and not placed, seconds
        self.placed_pods: Callable[[int], Iterable[tuple[Task, float]]] = (
            lambda row: ()
        )  # who holds room on a row, and since when, seconds
        self.shares_by_policy: Mapping[
            int, GroupShares
        ] = {}  # by the identity of the policy that asked for it
        self.job_work: JobWork | None = None
        self._rankings: dict[tuple[TaskClass, object], Ranking] = {}

    def task_class(self, task: Task) -> TaskClass:
        """The class of the task, up to date."""
        return self.classes.current(task.spec, task.workload)

    def speeds(self, task_class: TaskClass) -> Speeds:
        """What is believed of every node for the work of this class; all nodes are equal for a probe.

        Else no probe would go to a node believed dead, and nothing would ever bring that back.
        """
        found = self.learn.speeds(task_class.workload)
        return Speeds(np.ones_like(found.rate), 1.0, found.epoch) if task_class.spec.probe else found

    def shares(self, policy: object) -> GroupShares:
        """What the groups of this policy's `counted_by` hold. Raises KeyError where it asks for none."""
        return self.shares_by_policy[id(policy)]

    def work_left(self, task: Task) -> float:
        """Work of the task's job that has not begun, seconds, for policies that want it; inf if unknown."""
        return inf if self.job_work is None else self.job_work.left(task)

    def ranking(self, task_class: TaskClass, cost: Cost, owner: object) -> Ranking:
        """The nodes of a class by a policy's cost, kept up to date at the price of what changed."""
        key = (task_class, owner)
        ranking = self._rankings.get(key)
        if ranking is None:
            if len(self._rankings) >= self.classes.max_classes:
                self._rankings.clear()
            ranking = self._rankings[key] = Ranking(task_class, cost)
        ranking.refresh(self.learn.speeds(task_class.workload).epoch)
        return ranking
