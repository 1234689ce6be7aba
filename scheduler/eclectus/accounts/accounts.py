"""The accounts that policies need; the others are not kept and cost nothing."""

from collections.abc import Callable, Container, Iterable
from heapq import nlargest
from math import inf
from typing import NamedTuple

from msgspec import Struct

from eclectus.accounts.group_shares import MAX_CHANGES, GroupShares
from eclectus.accounts.known_jobs import KnownJobs
from eclectus.accounts.node_prices import NodePricing, SetDemand
from eclectus.accounts.pools import Pools
from eclectus.accounts.restartable_pods import RestartablePods
from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.nodes import Cluster
from eclectus.maths.load import ArrivalRate
from eclectus.model.objects import ClassKey, Task

HALF_LIFE = 500.0  # arrivals
GROWTH: float = 2.0 ** (1.0 / HALF_LIFE)
MAX_WEIGHT = 1e100  # of one arrival; before floats overflow all weights are scaled back
MAX_CLASSES = 1024  # twice as many are kept at most; then the rarest are forgotten


class Arrivals:
    """How many tasks that end by themselves arrive a second, of each class, for any scheduler.

    The rate of all tasks is that of maths/load.py. A class has a share of it: the share of the
    recent arrivals that are of the class, where an arrival counts half as much `HALF_LIFE` arrivals later. So
    the memory is one number a class, and no time scale has to be chosen: a cluster with a thousand tasks an
    hour and one with a thousand a second remember the same number of tasks.
    """

    def __init__(self) -> None:
        self._rate = ArrivalRate()
        self._weights: dict[ClassKey, float] = {}
        self._weight = 1.0  # of the next arrival: the newest grow, which is cheaper than shrinking all others

    def add(self, task: Task, now: float) -> None:
        """A task arrives. `now` must not decrease from call to call."""
        self._rate.add(now)
        key = (task.spec, task.workload)
        self._weights[key] = self._weights.get(key, 0.0) + self._weight
        self._weight *= GROWTH
        if len(self._weights) > 2 * MAX_CLASSES or self._weight > MAX_WEIGHT:
            kept = nlargest(MAX_CLASSES, self._weights.items(), key=lambda each: each[1])
            self._weights = {key: weight / self._weight for key, weight in kept}
            self._weight = 1.0

    def rates(self, now: float, most: int) -> dict[ClassKey, float]:
        """Tasks a second of the `most` classes that arrive most often; those of others count among these."""
        kept = nlargest(most, self._weights.items(), key=lambda each: each[1])
        total = sum(weight for _, weight in kept)
        rate = self._rate.slow(now)
        return {key: rate * weight / total for key, weight in kept}


class _Job(Struct):
    pending: int = 0
    left: float | None = None  # seconds; None while nothing is known
    figure: tuple[float, float] = (-inf, 0.0)  # created and job_work of the pod whose figure counts


class JobWork:
    """Seconds of work that has not started, by job; a pod without a job is a job of its own.

    A pod may state how much work of its job had not started when the pod was submitted (`Task.job_work`). The
    figure of the youngest pod counts, less the estimates of the pods that have started since. A figure equal
    to the one that counts is ignored, because all pods of one template carry the same figure. The work of a
    job without a figure is the sum of the estimates of its waiting pods.

    Errors overestimate, until the job's next pod is submitted: after a restart it is unknown which pods have
    started since, and pods that are deleted before they start stay in their job's figure.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._job_of: dict[str, str] = {}  # uid -> job under which the pod was added: its owner may change
        self.changes = ChangeLog[str](MAX_CHANGES)  # jobs whose work left has changed

    def left(self, task: Task) -> float:
        """Work of the task's job that has not started, seconds; inf if it is unknown."""
        job = self._jobs.get(self._job_of.get(task.uid, ""))
        return inf if job is None or job.left is None else max(job.left, 0.0)

    def add(self, task: Task) -> None:
        """The pod has become pending, or has another job than when it was added."""
        if task.uid in self._job_of:
            self.remove(task)
        name = self._job_of[task.uid] = task.job or task.uid
        job = self._jobs.setdefault(name, _Job())
        job.pending += 1
        self.changes.record(name)
        created, figure = job.figure
        if task.job_work is None:
            if task.estimate is not None and created == -inf:
                job.left = (job.left or 0.0) + task.estimate
        elif task.job_work != figure and (task.created, task.job_work) > job.figure:
            job.figure, job.left = (task.created, task.job_work), task.job_work

    def start(self, task: Task, *, is_undone: bool = False) -> None:
        """The pod has got a node. `is_undone`: its bind was refused, and it waits again."""
        name, seconds = self._job_of[task.uid], task.estimate or 0.0
        job = self._jobs[name]
        if job.left is not None:
            job.left -= -seconds if is_undone else seconds
            self.changes.record(name)

    def remove(self, task: Task) -> None:
        """The pod is no longer pending: bound, ended or deleted."""
        name = self._job_of.pop(task.uid)
        job = self._jobs[name]
        job.pending -= 1
        if not job.pending:
            del self._jobs[name]


Account = GroupShares | SetDemand | KnownJobs | Pools
"""What is counted of pods: `wait` and `leave` of pending ones, `hold`, `release` and `regroup` of those that
hold room on nodes."""
AccountOfPlaced = Account | RestartablePods
"""The same, or what is counted of those that hold room alone."""


class Grouping(NamedTuple):
    """How a policy groups pods, to see what each group holds."""

    policy: object
    counted_by: Callable[[Task], str]
    fault: Callable[[str], None]  # called with what `counted_by` has raised
    by_path: bool


class Accounts:
    """The accounts of a scheduler; None for one that no policy needs.

    `of_pending`, `of_placed`: those that count pending pods, and pods that hold room on nodes.
    """

    def __init__(self, cluster: Cluster, needs: Container[str], groupings: Iterable[Grouping]) -> None:
        self.shares = {  # by the identity of the policy
            id(each.policy): GroupShares(cluster, each.counted_by, each.fault, by_path=each.by_path)
            for each in groupings
        }
        self.pricing = NodePricing(cluster) if "prices" in needs else None
        self.job_work = JobWork() if "work" in needs else None
        self.arrivals = Arrivals() if "arrivals" in needs else None
        self.jobs = KnownJobs() if "jobs" in needs else None
        self.restartable = RestartablePods() if "restartable pods" in needs else None
        self.pools = Pools(cluster)
        demand = () if self.pricing is None else (self.pricing.demand,)
        jobs = () if self.jobs is None else (self.jobs,)
        by_path = [each for each in self.shares.values() if each.by_path]
        self.of_pending: list[Account] = [*demand, *jobs, *by_path]
        restartable = () if self.restartable is None else (self.restartable,)
        self.of_placed: list[AccountOfPlaced] = [*self.shares.values(), *demand, *jobs, *restartable]

    def count_pools(self) -> None:
        """Count for pools from now on: there is one."""
        self.of_pending.append(self.pools)
        self.of_placed.append(self.pools)
