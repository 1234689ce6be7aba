"""What a policy may read: arrays over nodes, classes, speeds, node queues, time and seeded randomness."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from math import inf
from random import Random
from typing import Protocol

import numpy as np
from msgspec import Struct

from eclectus.accounts.arrivals import Arrivals
from eclectus.accounts.group_shares import GroupShares
from eclectus.accounts.job_work import JobWork
from eclectus.accounts.known_jobs import KnownJobs
from eclectus.accounts.node_prices import NodePrices, NodePricing
from eclectus.cluster.budgets import Budgets
from eclectus.cluster.nodes import Cluster
from eclectus.feasibility.class_cache import ClassCache
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.learner import Learn, Speeds
from eclectus.framework.ranking import Cost, CostOfFew, Ranking, Weigh
from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey, Reservation


class PlacedPods(Protocol):
    """What is known of the pods that hold room on nodes."""

    def on_row(self, row: int) -> Iterable[tuple[Task, float]]:
        """The pods that hold room on a row, and since when, seconds."""

    def is_nominated(self, uid: str) -> bool:
        """Whether room is held for a pod that is neither bound nor assumed."""

    def held_since(self, uid: str) -> float | None:
        """Since when a pod holds room, seconds: since its start where it is known. None if it holds none."""

    @property
    def lowest_priority(self) -> float:
        """The lowest priority of any pod that holds room; inf if none does."""


class View(Struct, frozen=True, eq=False):
    """What a policy may read in one step. No field can be set, and the next step has another view.

    Only `now` differs between two steps: the rest is live. What an action changes is seen as soon as it is in
    force.

    `now`: the time of the step, seconds.
    `node_queues`: row -> the reservations in its node queue, in order of arrival.
    `queued_tasks`: class -> its tasks that wait in node queues, each once however many reservations it has.
    `deferred_since`: uid -> since when the task has been deferred in every cycle, seconds.
    `evicted`: pods of which the eviction was sent, as long as they exist. `budgets`: PodDisruptionBudgets.
    `shares_by_policy`: the accounts of `shares`, by the identity of the policy that asks for them.
    `arrivals`: how many tasks of each class arrive; None unless a policy wants it. `known_jobs`: likewise.
    """

    now: float
    cluster: Cluster
    classes: ClassCache
    learn: Learn
    rng: Random
    node_queues: Mapping[int, Sequence[Reservation]]
    queued_tasks: Mapping[ClassKey, int]
    deferred_since: Mapping[str, float]
    placed: PlacedPods
    evicted: Container[str]
    budgets: Budgets
    shares_by_policy: Mapping[int, GroupShares]
    job_work: JobWork | None
    pricing: NodePricing | None
    arrivals: Arrivals | None
    known_jobs: KnownJobs | None

    def placed_pods(self, row: int) -> Iterable[tuple[Task, float]]:
        """The pods that hold room on a row, bound, assumed or nominated, and since when, seconds."""
        return self.placed.on_row(row)

    def is_nominated(self, uid: str) -> bool:
        """Whether room is held for a pod that is neither bound nor assumed."""
        return self.placed.is_nominated(uid)

    @property
    def lowest_priority(self) -> float:
        """The lowest priority of any pod that holds room on a node; inf if none does."""
        return self.placed.lowest_priority

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
        return self.shares_by_policy[id(policy)]

    def work_left(self, task: Task) -> float:
        """Work of the task's job that has not begun, seconds; inf where it is unknown."""
        return inf if self.job_work is None else self.job_work.left(task)

    @property
    def jobs(self) -> KnownJobs:
        """The DAG jobs, by uid. Raises LookupError where no policy needs them (`jobs`)."""
        if self.known_jobs is None:
            raise LookupError("no policy of this scheduler has asked for DAG jobs")
        return self.known_jobs

    def node_prices(self) -> NodePrices:
        """The prices of all nodes. Raises LookupError where no policy needs them (`prices`)."""
        if self.pricing is None:
            raise LookupError("no policy of this scheduler has asked for node prices")
        return self.pricing.current

    def is_long(self, task: Task) -> bool:
        """Whether the task's estimate is long beside those of late; False where node prices are not kept."""
        return self.pricing is not None and self.pricing.demand.is_long(task.uid)

    def ranking(
        self,
        task_class: TaskClass,
        cost: Cost,
        owner: object,
        epoch: Hashable = None,
        *,
        cost_of_few: CostOfFew | None = None,
        weigh: Weigh | None = None,
        weigh_epoch: Hashable = None,
    ) -> Ranking:
        """The nodes of a class ranked by a policy's cost, brought up to date for the rows that changed.

        A class has one ranking for each owner. `epoch`: what the cost depends on beside the class and the
        speeds; with another one all costs are computed again. `cost_of_few`: the same costs, of a few rows.
        `weigh`, which goes without it: makes the costs from those without preferences, which `cost` then
        gives, so that a pod that changes the preference scores of all nodes costs little; with another
        `weigh_epoch` it weighs all of them again.
        """
        ranking: Ranking | None = task_class.derived.get(owner)
        if ranking is None or ranking.epoch != epoch:
            ranking = task_class.derived[owner] = Ranking(task_class, cost, epoch)
        ranking.cost, ranking.cost_of_few, ranking.weigh = cost, cost_of_few, weigh
        ranking.refresh(self.learn.speeds(task_class.workload).epoch, weigh_epoch)
        return ranking
