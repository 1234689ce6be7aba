"""The accounts that policies need: each has a module of its own, and the others cost nothing.

What happens to a pod is passed on to those that are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import NamedTuple, Protocol

from eclectus.accounts.arrivals import Arrivals
from eclectus.accounts.group_shares import GroupShares
from eclectus.accounts.job_work import JobWork
from eclectus.accounts.known_jobs import KnownJobs
from eclectus.accounts.node_prices import NodePricing
from eclectus.cluster.nodes import Cluster
from eclectus.model.objects import Task


class HoldingAccount(Protocol):
    """What is counted of the pods that hold room on nodes."""

    def hold(self, task: Task) -> None:
        """The pod has a node from now on."""

    def release(self, uid: str) -> None:
        """It has none any more."""

    def regroup(self, task: Task) -> None:
        """It holds what it held; its labels or its owner may have changed."""


class Grouping(NamedTuple):
    """How a policy groups pods, to see what each group holds."""

    policy: object
    counted_by: Callable[[Task], str]
    fault: Callable[[str], None]  # called with what `counted_by` has raised
    by_path: bool


class Accounts:
    """The accounts of a scheduler; None for one that no policy needs."""

    def __init__(self, cluster: Cluster, needs: Container[str], groupings: Iterable[Grouping]) -> None:
        self.shares = {  # by the identity of the policy
            id(each.policy): GroupShares(cluster, each.counted_by, each.fault, by_path=each.by_path)
            for each in groupings
        }
        self._by_path = [each for each in self.shares.values() if each.by_path]
        self.pricing = NodePricing(cluster) if "prices" in needs else None
        self.job_work = JobWork() if "work" in needs else None
        self.arrivals = Arrivals() if "arrivals" in needs else None
        self.jobs = KnownJobs() if "jobs" in needs else None

    def of_placed_pods(self) -> list[HoldingAccount]:
        """Those that count what pods hold on nodes."""
        accounts: list[HoldingAccount] = list(self.shares.values())
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
        """A task that ends is pending here, or was bound by another scheduler; once a task."""
        if self.arrivals is not None and not task.spec.probe:
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


def _may_run(task: Task) -> bool:
    """Whether a pending pod could get a node, and so demands one."""
    return not task.gates and not task.deleting
