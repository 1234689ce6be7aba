"""The accounts that policies need; the others are not kept and cost nothing."""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import nlargest
from math import inf
from typing import NamedTuple

from msgspec import Struct

from eclectus.accounts.known_jobs import KnownJobs
from eclectus.accounts.node_prices import NodePricing, SetDemand
from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import PODS
from eclectus.maths.load import ArrivalRate
from eclectus.model.objects import Amounts, ClassKey, Task

Fault = Callable[[str], None]

SEPARATOR = "/"  # in groups that are paths
MAX_CHANGES = 8192  # of groups, or jobs, that are remembered


class _Counted(Struct, frozen=True, gc=False):
    """A task as it was counted: its labels, and so its group, may change later."""

    group: str
    amounts: Amounts


class GroupShares:
    """Amounts held by groups of tasks, by group and resource; `pods` is a resource like any other.

    Kept for each policy that defines groups by `counted_by`, and for no other. Every pod on a node counts,
    whichever scheduler placed it, because what it holds is held. Amounts are whole numbers, so that equal
    shares are exactly equal.

    Where groups are paths, `team/job`, every prefix has an account too, down to the empty one of all groups;
    and what waiting tasks request is counted, deferred ones included.
    """

    def __init__(
        self, cluster: Cluster, group: Callable[[Task], str], fault: Fault, *, by_path: bool = False
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._fault = fault
        self.by_path = by_path
        self._held: dict[str, Counter[str]] = {}
        self._counted: dict[str, _Counted] = {}  # by uid
        # Of paths: what tasks without a node request, and all pending tasks by uid.
        self._waiting: dict[str, Counter[str]] = {}
        self._pending: dict[str, _Counted] = {}
        self._totals: dict[str, float] = {}  # resource -> allocatable amount of all nodes
        self._shape_cursor = -1
        self._changes = ChangeLog[str](MAX_CHANGES)

    def held(self, group: str) -> Mapping[str, int]:
        """Resource -> amount that the group holds; empty if it holds nothing."""
        return self._held.get(group, {})

    def waiting(self, group: str) -> Mapping[str, int]:
        """Resource -> amount that waiting tasks of a path or prefix request; empty if none waits."""
        return self._waiting.get(group, {})

    def paths(self) -> AbstractSet[str]:
        """The groups and prefixes that hold something or wait for it."""
        return self._held.keys() | self._waiting.keys()

    def dominant_share(self, group: str, weight: float = 1.0) -> float:
        """The group's largest share of any resource's total, divided by its weight (DRF, NSDI 2011).

        A resource that no node offers any more is left out. There is one division and so one rounding:
        equal fractions are equal numbers.
        """
        held = self._held.get(group)
        if held is None:
            return 0.0
        totals = self._current_totals()
        shares = (held[name] / (total * weight) for name, total in totals.items() if name in held)
        return max(shares, default=0.0)

    def share_of_dominant(self, group: str, requests: Amounts, weight: float = 1.0) -> float:
        """The group's share of the resource of which these requests are the largest part, over its weight.

        Of the number of pods where nothing is requested that nodes offer.
        """
        held = self._held.get(group)
        if held is None:
            return 0.0
        totals = self._current_totals()
        parts = ((amount / totals[name], name) for name, amount in requests if totals.get(name))
        name = max(parts, default=(0.0, PODS))[1]
        total = totals.get(name)
        return held.get(name, 0) / (total * weight) if total else 0.0

    @property
    def changes(self) -> ChangeLog[str]:
        """The groups whose amounts have changed; all, where the totals that shares are taken of have."""
        self._current_totals()
        return self._changes

    def hold(self, task: Task) -> None:
        """Count a task, which must not be counted already."""
        counted = _Counted(self._group_of(task), (*task.holding, (PODS, 1)))
        if task.uid in self._pending:
            self._add(self._waiting, self._pending[task.uid], -1)
        self._counted[task.uid] = counted
        self._add(self._held, counted, 1)

    def release(self, uid: str) -> None:
        """Count a task no longer; KeyError if it is not counted."""
        self._add(self._held, self._counted.pop(uid), -1)
        if uid in self._pending:
            self._add(self._waiting, self._pending[uid], 1)

    def regroup(self, task: Task) -> None:
        """A counted task may belong to another group now, because its labels or its owner have changed."""
        if self._counted[task.uid].group != self._group_of(task):
            self.release(task.uid)
            self.hold(task)

    def wait(self, task: Task) -> None:
        """A pending task that may run was seen; it counts while it has no node."""
        counted = _Counted(self._group_of(task), (*task.spec.requests, (PODS, 1)))
        if self._pending.get(task.uid) != counted:
            self.leave(task.uid)
            self._pending[task.uid] = counted
            if task.uid not in self._counted:
                self._add(self._waiting, counted, 1)

    def leave(self, uid: str) -> None:
        """The task is not pending, or may not run now; no error if it did not wait."""
        counted = self._pending.pop(uid, None)
        if counted is not None and uid not in self._counted:
            self._add(self._waiting, counted, -1)

    def _add(self, accounts: dict[str, Counter[str]], counted: _Counted, sign: int) -> None:
        group = counted.group
        for name in (group, *prefixes(group), "") if self.by_path else (group,):
            account = accounts.get(name)
            if account is None:
                account = accounts[name] = Counter()
            for resource, amount in counted.amounts:
                account[resource] += sign * amount
            if not account[PODS]:
                del accounts[name]
        self._changes.record(group)

    def _group_of(self, task: Task) -> str:
        try:
            return str(self._group(task))
        except Exception as error:  # a policy's defect must not stop the others
            self._fault(f"{type(error).__name__}: {error}")
            return ""

    def _current_totals(self) -> dict[str, float]:
        cluster = self._cluster
        if cluster.shape.head != self._shape_cursor:
            sums, before = cluster.allocatable.sum(axis=0), self._totals
            self._totals = {name: float(sums[at]) for name, at in cluster.columns.items() if sums[at] > 0}
            self._shape_cursor = cluster.shape.head
            if self._totals != before:
                self._changes.record_all()
        return self._totals


def prefixes(path: str) -> Iterator[str]:
    """The proper prefixes of a path: of `a/b/c` they are `a` and `a/b`."""
    at = path.find(SEPARATOR)
    while at >= 0:
        yield path[:at]
        at = path.find(SEPARATOR, at + 1)


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


@dataclass(slots=True)
class _Job:
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


Account = GroupShares | SetDemand | KnownJobs
"""What is counted of pods: `wait` and `leave` of pending ones, `hold`, `release` and `regroup` of those that
hold room on nodes."""


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
        demand = () if self.pricing is None else (self.pricing.demand,)
        jobs = () if self.jobs is None else (self.jobs,)
        by_path = [each for each in self.shares.values() if each.by_path]
        self.of_pending: tuple[Account, ...] = (*demand, *jobs, *by_path)
        self.of_placed: tuple[Account, ...] = (*self.shares.values(), *demand, *jobs)
