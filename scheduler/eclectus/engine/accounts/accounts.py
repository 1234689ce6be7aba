"""What is counted of pods for policies that ask for it: shares, work left, prices, arrivals and DAG jobs.

Every account has a module of its own. This one keeps those that a policy wants, and passes on to them what
happens to a pod; the others cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from eclectus.cluster.nodes import Cluster
from eclectus.cluster.shares import GroupShares
from eclectus.engine.placed_pods import Account
from eclectus.framework import Need, Order, Place, Policy
from eclectus.framework.arrivals import Arrivals
from eclectus.framework.job_work import JobWork
from eclectus.framework.jobs import KnownJobs
from eclectus.framework.node_prices import NodePricing
from eclectus.model.objects import Task


class Accounts:
    """The accounts that the policies of a scheduler want; None for one that nobody wants."""

    def __init__(
        self, cluster: Cluster, policies: Sequence[Order | Place], fault: Callable[[Policy, str], None]
    ) -> None:
        """`fault`: what takes the defects of a policy's `counted_by`."""
        self.shares = {  # by the identity of the policy
            id(policy): GroupShares(
                cluster, policy.counted_by, partial(fault, policy), by_path=_is_by_path(policy)
            )
            for policy in policies
            if "shares" in policy.traits.needs
        }
        self._by_path = [each for each in self.shares.values() if each.by_path]
        needs = frozenset[Need]().union(*(policy.traits.needs for policy in policies))
        self.pricing = NodePricing(cluster) if "prices" in needs else None
        self.job_work = JobWork() if "work" in needs else None
        self.arrivals = Arrivals() if "arrivals" in needs else None
        self.jobs = KnownJobs() if "jobs" in needs else None

    def of_placed_pods(self) -> list[Account]:
        """Those that count what pods hold on nodes."""
        accounts: list[Account] = list(self.shares.values())
        if self.pricing is not None:
            accounts.append(self.pricing.demand)
        if self.jobs is not None:
            accounts.append(self.jobs)
        return accounts

    def begin_step(self, now: float) -> None:
        """A step begins at this time, seconds."""
        if self.pricing is not None:
            self.pricing.update(now)

    def arrived(self, task: Task, now: float) -> None:
        """The task is pending here, or was bound by another scheduler; once a task."""
        if self.arrivals is not None and not (task.spec.long_running or task.spec.probe):
            self.arrivals.add(task, now)

    def pending(self, task: Task, before: Task | None) -> None:
        """A pending pod of ours was seen; `before`: as it was seen last."""
        if self.job_work is not None and (before is None or before.job != task.job):
            self.job_work.add(task)
        if self.pricing is not None:
            count = self.pricing.demand
            count.wait(task) if _may_run(task) else count.leave(task.uid)
        if self.jobs is not None:
            self.jobs.wait(task) if _may_run(task) else self.jobs.leave(task.uid)
        for shares in self._by_path:
            shares.wait(task) if _may_run(task) else shares.leave(task.uid)

    def start(self, task: Task) -> None:
        """A pending pod has got a node."""
        if self.job_work is not None:
            self.job_work.start(task)

    def undo_start(self, task: Task) -> None:
        """Its bind was refused, and the pod waits again."""
        if self.job_work is not None:
            self.job_work.undo_start(task)

    def forget(self, task: Task) -> None:
        """The pod is no longer pending: bound, ended or deleted."""
        if self.job_work is not None:
            self.job_work.remove(task)
        if self.pricing is not None:
            self.pricing.demand.leave(task.uid)
        if self.jobs is not None:
            self.jobs.leave(task.uid)
        for shares in self._by_path:
            shares.leave(task.uid)

    def ended(self, task: Task) -> None:
        """The pod has ended."""
        if self.jobs is not None and task.phase == "Succeeded":
            self.jobs.succeed(task)


def _is_by_path(policy: Order | Place) -> bool:
    return isinstance(policy, Order) and policy.traits.ranks_by_path


def _may_run(task: Task) -> bool:
    """Whether a pending pod could get a node, and so demands one."""
    return not task.gates and not task.deleting
