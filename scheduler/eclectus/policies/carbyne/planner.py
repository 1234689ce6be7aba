"""The shares and plans of all DAG jobs, kept up to date from what has changed.

A share follows the jobs that want something, their weights, which of their stages are done, and the capacity
that services leave. Pods that belong to no DAG job share as one job for each namespace. A job is planned anew
when one of its tasks has ended, or when its share differs from the planned one by more than `LEAST_CHANGE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import nlargest
from math import inf

import numpy as np

from eclectus.cluster.changelog import ChangeLog
from eclectus.cluster.resources import PODS
from eclectus.framework import View
from eclectus.framework.jobs import KnownJob
from eclectus.maths.shares.hierarchical_shares import PoolTree, hierarchical_shares, pool_tree
from eclectus.maths.stage_ranks.table import StageRanks
from eclectus.model.job import JobPlan, JobStage
from eclectus.model.objects import Amounts
from eclectus.policies.carbyne.entitlements import Entitlements
from eclectus.policies.carbyne.planned_job import PlannedJob
from eclectus.policies.shared.portions import Vector, added, magnitude

LEAST_CHANGE = 0.05  # of a share, for which a job is planned anew
LAST_PART = 0.1  # of the jobs, which lend no time that they have gained: those with the latest deadlines
MAX_CHANGES = 8192  # of paths, that are remembered for who ranks groups
PACE_SECONDS = 60.0  # for which a mean pace is good
SERVICES = "-"  # the path of pods that take part in no sharing; no namespace has this name


class PlainPods:
    """The pods of a namespace that belong to no DAG job: one job that lends nothing."""

    def __init__(self, waiting: Vector, usage: Vector, none: Vector) -> None:
        self.waiting, self.usage, self.share = waiting, usage, none


class Planner:
    """What is planned for whom. `by_namespace`: namespaces share equally, and jobs within them.

    `is_bounded`: whether anybody asks for `entitlements`. `stage_ranks`: which stage of a job is planned
    first.
    """

    def __init__(
        self,
        owner: object,
        altruism: float,
        *,
        by_namespace: bool,
        is_bounded: bool,
        stage_ranks: StageRanks,
    ) -> None:
        self._owner, self._altruism, self._by_namespace = owner, altruism, by_namespace
        self._is_bounded, self._stage_ranks = is_bounded, stage_ranks
        self.entitlements = Entitlements()
        self.jobs: dict[str, PlannedJob] = {}  # by uid
        self.plain: dict[str, PlainPods] = {}  # by path
        self.changes = ChangeLog[str](MAX_CHANGES)  # paths whose tasks may have another rank
        self.withheld: dict[str, None] = {}  # groups that were withheld because of others
        self.capacity: Vector = ()  # of all nodes, by resource
        self._resources: tuple[str, ...] = ()
        self._jobs_cursor = self._shares_cursor = self._shape_cursor = -1
        self._is_stale = True  # whether shares are to be computed again
        self._magnitudes: object = None  # of plain pods and services, as of then
        self._to_record: dict[str, None] = {}  # jobs whose plans have changed
        self._last_plans: dict[str, JobPlan] = {}  # of jobs that are done or gone, by uid
        self._paces: dict[tuple[object, str], tuple[float, float]] = {}  # by class: until when, and pace

    # -- what has changed --------------------------------------------------------------------------

    def update(self, view: View) -> None:
        """Take in what has changed; costs nothing if nothing has."""
        jobs, shares = view.jobs.changes, view.shares(self._owner).changes
        heads = (jobs.head, shares.head, view.cluster.shape.head)
        if heads == (self._jobs_cursor, self._shares_cursor, self._shape_cursor):
            return
        is_new_cluster = heads[2] != self._shape_cursor
        paths = shares.since(self._shares_cursor)
        uids = jobs.since(self._jobs_cursor)
        self._jobs_cursor, self._shares_cursor, self._shape_cursor = heads
        if is_new_cluster:
            self._measure(view)
        if is_new_cluster or paths is None or uids is None:
            self._take_in(view, {*self.jobs, *view.jobs}, has_plain=True)
        else:
            named = [path.partition("/") for path in paths]
            changed = {*uids, *(uid for _, _, uid in named if uid)}
            self._take_in(view, changed, has_plain=any(not uid for _, _, uid in named))
        for group in self.withheld:
            self.changes.record(group)
        self.withheld.clear()

    def _measure(self, view: View) -> None:
        """Nodes have changed: all amounts are measured anew."""
        cluster = view.cluster
        sums = cluster.allocatable.sum(axis=0)
        offered = (name for name, column in cluster.columns.items() if sums[column] > 0)
        self._resources = tuple(name for name in offered if name != PODS)  # nobody plans by it
        self.capacity = tuple(float(sums[cluster.columns[name]]) for name in self._resources)
        kept, self._is_stale = self.jobs, True
        self.jobs = {}
        self.entitlements.clear(len(self._resources))
        for uid, before in kept.items():
            if uid in view.jobs:
                job = self.jobs[uid] = PlannedJob(
                    view.jobs[uid], self.capacity, self.vector, self._stage_ranks
                )
                job.deadline, job.lends = before.deadline, before.lends
        self._paces.clear()

    def _new(self, known: KnownJob) -> PlannedJob:
        return PlannedJob(known, self.capacity, self.vector, self._stage_ranks)

    def _take_in(self, view: View, changed: set[str], *, has_plain: bool) -> None:
        lost, ended = set[str](), set[str]()
        for uid in sorted(changed):
            self._count(view, uid, lost, ended)
        if has_plain:
            self._count_plain(view)
        is_shared, self._is_stale = self._is_stale, False
        if is_shared:
            self._share(view)
            ended.update(uid for uid, job in self.jobs.items() if job.share_differs(LEAST_CHANGE))
        for uid in sorted(ended):
            self._replan(view, uid, work_lost=uid in lost)
        if is_shared:
            self._choose_last()
        for uid in sorted({*changed, *ended}):
            if (job := self.jobs.get(uid)) is not None:
                self._entitle(uid, job, view.now)
                self.changes.record(job.path)
                self._to_record[uid] = None

    def _count(self, view: View, uid: str, lost: set[str], ended: set[str]) -> None:
        """Bring the counts of one job up to date; into `ended` if it is to be planned anew."""
        known, job = view.jobs.get(uid), self.jobs.get(uid)
        if known is None or known.is_done:
            if job is not None:
                self._drop(uid, job)
            return
        if job is None or job.known is not known:
            job = self.jobs[uid] = self._new(known)
            ended.add(uid)
            self._is_stale = True
        job.usage = self.vector(view.shares(self._owner).held(job.path).items())
        before, job.counts = job.counts, job.count()
        for at, (new, old) in enumerate(zip(job.counts, before, strict=True)):
            if new.to_start > old.to_start:
                lost.add(uid)
            if new.to_start > old.to_start or new.succeeded != old.succeeded:
                ended.add(uid)
            elif new.on_nodes > old.on_nodes:
                job.started(at, view.now)
        signature = (known.job.weight, job.wants_more, *(each.is_done for each in known.stages))
        if signature != job.signature:
            job.signature, self._is_stale = signature, True

    def _drop(self, uid: str, job: PlannedJob) -> None:
        """The job is done, or gone: nothing of it is lent or borrowed any more."""
        self.entitlements.drop(uid)
        kept = job.deadline
        at = None if kept.at == inf else kept.at
        self._last_plans[uid] = JobPlan((), 0.0, at, kept.slips, kept.slip_seconds)
        del self.jobs[uid]
        self._is_stale = True

    def _count_plain(self, view: View) -> None:
        shares, none = view.shares(self._owner), (0.0,) * len(self._resources)
        found = {path: None for path in shares.paths() if path.endswith("/") and path != SERVICES}
        kept = self.plain
        self.plain = {}
        for path in found:
            waiting, usage = self.vector(shares.waiting(path).items()), self.vector(shares.held(path).items())
            each = self.plain[path] = PlainPods(waiting, usage, none)
            if path in kept and len(kept[path].share) == len(none):
                each.share = kept[path].share
            if path not in kept or (kept[path].waiting, kept[path].usage) != (waiting, usage):
                self.changes.record(path)
        services = shares.held(SERVICES)
        magnitudes = (
            tuple((path, *map(magnitude, added(e.waiting, e.usage))) for path, e in self.plain.items()),
            tuple(magnitude(services.get(name, 0)) for name in self._resources),
        )
        if magnitudes != self._magnitudes:
            self._magnitudes, self._is_stale = magnitudes, True

    # -- shares ------------------------------------------------------------------------------------

    def _share(self, view: View) -> None:
        """Compute all shares (line 8 to 15 of the paper's algorithm)."""
        jobs, plain = list(self.jobs.values()), list(self.plain.values())
        if not self._resources or not (jobs or plain):
            return
        remaining = [job.remaining() for job in jobs]
        alike = [added(each.waiting, each.usage) for each in plain]
        work = np.array([each for each, _ in remaining] + alike)
        most = np.array([each for _, each in remaining] + alike)
        services = self.vector(view.shares(self._owner).held(SERVICES).items())
        capacity = np.maximum(np.array(self.capacity) - np.array(services), 0.0)
        weights = np.array([job.known.job.weight for job in jobs] + [1.0] * len(plain))
        shares = hierarchical_shares(work, weights, capacity, self._pools(), most)
        sharing: list[PlannedJob | PlainPods] = [*jobs, *plain]
        for each, share in zip(sharing, shares.tolist(), strict=True):
            each.share = tuple(share)
        for job in jobs:
            self.changes.record(job.path)
        for path in self.plain:
            self.changes.record(path)
        self.entitlements.clear(len(self._resources))
        for uid, job in self.jobs.items():
            self._draw(view, job)
            self._entitle(uid, job, view.now)

    def _pools(self) -> PoolTree:
        """Whose the jobs are, then the plain pods: namespaces, and pools within them; or nobody's."""
        paths: list[tuple[str, ...]] = []
        if self._by_namespace:
            named = [(job.known.job.namespace, job.known.job.pool) for job in self.jobs.values()]
            named += [(path.partition("/")[0], "") for path in self.plain]
            paths = [(namespace, pool) if pool else (namespace,) for namespace, pool in named]
        return pool_tree(paths or [()] * (len(self.jobs) + len(self.plain)), {})

    # -- plans -------------------------------------------------------------------------------------

    def _replan(self, view: View, uid: str, *, work_lost: bool) -> None:
        job = self.jobs.get(uid)
        if job is None:
            return
        job.seconds = [self._expected(view, each) for each in job.known.job.stages]
        job.replan(view.now, view.placed.held_since, work_lost=work_lost)
        self._draw(view, job)

    def _choose_last(self) -> None:
        """When all work ends is up to the jobs that end last: what they have gained, they keep."""
        known = [job for job in self.jobs.values() if job.plan is not None]
        last = set(nlargest(int(len(known) * LAST_PART), known, key=lambda job: job.deadline.at))
        for job in known:
            if job.let_lend_gains(lends=job not in last):
                self.changes.record(job.path)

    def _expected(self, view: View, stage: JobStage) -> float | None:
        """The expected run time of a task: its work over the mean pace of the nodes that may run it."""
        if stage.seconds is None:
            return None
        key = (stage.spec, stage.workload)
        until, pace = self._paces.get(key, (-inf, 1.0))
        if until <= view.now:
            task_class, pace = view.classes.current(*key), 1.0
            if task_class.feasible_count:  # a learner that has seen no node has no rates
                rows = task_class.feasible
                pace = float((view.speeds(task_class).rate[rows] * task_class.background_free[rows]).mean())
            self._paces[key] = (view.now + PACE_SECONDS, pace)
        return stage.seconds / pace if pace > 0.0 else stage.seconds

    def _draw(self, view: View, job: PlannedJob) -> None:
        """Whether the job lends until it is planned anew: one draw for each event that concerns it."""
        level = job.known.job.altruism * self._altruism
        job.lends = (
            job.plan is not None
            and self._others_want(job)
            and (level >= 1.0 or (level > 0.0 and view.rng.random() < level))
        )

    def _others_want(self, job: PlannedJob) -> bool:
        return any(each is not job and each.wants_more for each in self.jobs.values()) or any(
            any(each.waiting) for each in self.plain.values()
        )

    def _entitle(self, uid: str, job: PlannedJob, now: float) -> None:
        if self._is_bounded:
            self.entitlements.set(uid, job.entitled(), job.next_due(now))

    # -- for others --------------------------------------------------------------------------------

    def leaves_room(self, view: View, uid: str, demand: Vector) -> bool:
        """Whether beside this demand what all other jobs are entitled to remains free."""
        held = self.vector(view.shares(self._owner).held("").items())
        return self.entitlements.leave_room(uid, demand, held, self.capacity)

    def vector(self, amounts: Iterable[tuple[str, int]]) -> Vector:
        """Amounts in the planner's order; of resources that no node offers nothing."""
        found = dict(amounts)
        return tuple(float(found.get(name, 0)) for name in self._resources)

    def take_plans(self, view: View) -> Iterator[tuple[str, JobPlan]]:
        """The plans that have changed since the last call."""
        changed, self._to_record = self._to_record, {}
        ended, self._last_plans = self._last_plans, {}
        yield from ended.items()
        for uid in changed:
            job = self.jobs.get(uid)
            if job is not None:
                yield uid, self._written(job)

    def _written(self, job: PlannedJob) -> JobPlan:
        deadline = job.deadline
        above = tuple(max(usage - share, 0.0) for usage, share in zip(job.usage, job.share, strict=True))
        return JobPlan(
            share=self._amounts(job.share),
            finish_seconds=None if job.plan is None else job.plan.finish_seconds,
            deadline=None if deadline.at == inf else deadline.at,
            slips=deadline.slips,
            slip_seconds=deadline.slip_seconds,
            lent=self._amounts(job.lent()),
            borrowed=self._amounts(above),
        )

    def _amounts(self, vector: Vector) -> Amounts:
        named = ((name, int(amount)) for name, amount in zip(self._resources, vector, strict=True))
        return tuple(sorted((name, amount) for name, amount in named if amount))
