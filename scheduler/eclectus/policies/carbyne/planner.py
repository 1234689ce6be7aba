"""The shares and plans of all DAG jobs, kept up to date from what has changed.

A share follows the jobs, their weights, which of their stages are done, and the capacity. A step computes
all shares SHARED_MOST times at most; if more has changed, the next does.
A job is planned anew when one of its tasks has ended, or when its share differs from the planned one by more
than `LEAST_CHANGE`. A step takes in new jobs with STAGES_MOST stages in all, and plans as many, or as many
starts if these are more; of more, each namespace has a job in turn, and the rest is left to the next step,
which is due at once. What a known job holds is counted at once, because its next task is ranked by that.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain, zip_longest
from math import inf
from typing import Any

import numpy as np

from eclectus.accounts.known_jobs import KnownJob
from eclectus.cluster.due_times import DueTimes
from eclectus.framework import ChangeLog, JobPlan, Task, View
from eclectus.maths.stage_rank_rules import StageOrder
from eclectus.policies.carbyne.bookings import FOREVER, Booking, Bookings
from eclectus.policies.carbyne.paces import Paces
from eclectus.policies.carbyne.planned_job import (
    POOL,
    Offered,
    PlainPods,
    PlannedJob,
    added,
    offered_by,
    set_shares,
    with_other_shares,
)
from eclectus.policies.carbyne.shares_by_pool import SharesByPool, altruism_of


class ChangedPlans:
    """Whose plans are to be taken, and the last plans of jobs that are done or gone."""

    def __init__(self) -> None:
        self._changed: dict[str, JobPlan | None] = {}  # by uid: the last plan of one that is done or gone

    def record(self, uid: str) -> None:
        """The plan of a job has changed."""
        self._changed[uid] = None

    def end(self, uid: str, job: PlannedJob) -> None:
        """The job is done, or gone: nothing of it is lent or borrowed any more."""
        deadline = job.deadline
        at = None if deadline.at == inf else deadline.at
        self._changed[uid] = JobPlan((), 0.0, at, deadline.slips, deadline.slip_seconds)

    def take(self, jobs: Mapping[str, PlannedJob], offered: Offered) -> Iterator[tuple[str, JobPlan]]:
        """Uid and plan of each job whose plan has changed since the last call, last plans first."""
        changed, self._changed = self._changed, {}
        for uid, last in sorted(changed.items(), key=lambda each: each[1] is None):
            if last is not None:
                yield uid, last
            elif (job := jobs.get(uid)) is not None:
                yield uid, _written(job, offered)


def _written(job: PlannedJob, offered: Offered) -> JobPlan:
    deadline = job.deadline
    above = tuple(max(usage - share, 0.0) for usage, share in zip(job.usage, job.share, strict=True))
    return JobPlan(
        share=offered.amounts(job.share),
        finish_seconds=None if job.plan is None else job.plan.finish_seconds,
        deadline=None if deadline.at == inf else deadline.at,
        slips=deadline.slips,
        slip_seconds=deadline.slip_seconds,
        lent=offered.amounts(job.lent()),
        borrowed=offered.amounts(above),
    )


LEAST_CHANGE = 0.05  # of a share, for which a job is planned anew
LAST_PART = 0.1  # of the jobs, which lend no time that they have gained: those with the latest deadlines
MAX_CHANGES = 8192  # of paths that are remembered
STAGES_MOST = 1_000  # or starts, of the jobs that are taken in, and of those that are planned, in one step
SHARED_MOST = 8  # times in one step that all shares are computed


class Planner:
    """The plans of all jobs. `by_namespace`: namespaces share equally, or as Pools say, and jobs within them.

    `is_bounded`: whether `bookings` are asked for. `stage_order`: which stage is planned first.
    """

    def __init__(
        self, owner: object, altruism: float, *, by_namespace: bool, is_bounded: bool, stage_order: StageOrder
    ) -> None:
        self._owner = owner
        self._altruism = altruism
        self._by_namespace = by_namespace
        self._is_bounded = is_bounded
        self._stage_order = stage_order
        self.bookings = Bookings()  # of jobs by uid and of plain pods by path, if `is_bounded`
        self.jobs: dict[str, PlannedJob] = {}  # by uid
        self.changes = ChangeLog[str](MAX_CHANGES)  # paths whose tasks may have another rank
        self.beside: dict[str, None] = {}  # groups whose ranks depend on `bookings`
        self._books_differ = False  # since those were last recorded as changed
        self.offered = Offered()
        self.by_pool: SharesByPool | None = None  # where there were Pools when shares were computed last
        self._touched: dict[str, None] = {}  # uids of jobs, and paths of plain pods, that have changed since
        self.plain = PlainPods()
        self._paces = Paces()
        self.changed_plans = ChangedPlans()
        self._jobs_cursor = self._shares_cursor = self._shape_cursor = -1
        self._tree_version = 0
        self._is_stale = True  # whether shares are to be computed again
        self._has_new_claims = True  # whether they would be others then
        self._wanting: set[str] = set()  # uids of jobs that want more
        self._wanting_differs = False  # since it was last asked whether shares are to be computed
        self._had_rivals = False  # whether each job has had one since they were computed
        self._kept_rivals = False  # whether each had one from then until they were computed again
        self._ends_differ = False  # whether the jobs that end last may be others
        self._next_starts = DueTimes[str]()  # of jobs by uid: when their next task becomes due
        self.now = 0.0  # of the last update, seconds: what is due follows from it
        self.new_jobs: dict[str, None] = {}  # uids of jobs that are new or defined anew, until their turn
        self._unplanned: dict[str, bool] = {}  # uid -> whether work was lost, of jobs to be planned anew
        self._step: View | None = None
        self._stages_taken = self._stages_planned = self._shared = 0  # in this step
        self._drawn: set[str] = set()  # uids of jobs that have drawn in this step

    @property
    def is_behind(self) -> bool:
        """Whether jobs are left to the next step."""
        return bool(self.new_jobs or self._unplanned or self._is_stale)

    def update(self, view: View) -> None:
        """Take in what has changed; costs nothing if nothing has."""
        self._follow(view)
        if self._books_differ:
            self._books_differ = False
            for group in self.beside:
                self.changes.record(group)
            self.beside.clear()

    def _follow(self, view: View) -> None:
        self.now = view.now
        if view is not self._step:
            self._step, self._stages_taken, self._stages_planned, self._shared = view, 0, 0, 0
            self._drawn.clear()
        for uid in self._next_starts.take_due(view.now):
            self._book(view, uid, self.jobs[uid])
            self._has_changed(uid, self.jobs[uid])
        if view.pools.tree.version != self._tree_version:
            self._tree_version, self._is_stale, self.by_pool = view.pools.tree.version, True, None
        jobs, shares = view.jobs.changes, view.shares(self._owner).changes
        heads = (jobs.head, shares.head, view.cluster.shape.head)
        if heads == (self._jobs_cursor, self._shares_cursor, self._shape_cursor):
            if self.is_behind:
                self._take_in(view, (), ())
            return
        is_new_cluster = heads[2] != self._shape_cursor
        paths = shares.since(self._shares_cursor)
        uids = jobs.since(self._jobs_cursor)
        self._jobs_cursor, self._shares_cursor, self._shape_cursor = heads
        if is_new_cluster:
            self._measure(view)
        if is_new_cluster or paths is None or uids is None:
            accounts = {*self.plain.by_path, *view.shares(self._owner).paths()}
            self._take_in(view, {*self.jobs, *view.jobs}, accounts)
        else:
            named = {path.partition("/")[2] for path in paths if not path.startswith(POOL)}
            self._take_in(view, {*uids, *filter(None, named)}, paths)

    def _measure(self, view: View) -> None:
        """Nodes have changed: all amounts are measured anew."""
        resources = self.offered.resources
        self.offered, self._is_stale, self.by_pool = offered_by(view.cluster), True, None
        kept, self.jobs, self._wanting, self._ends_differ = self.jobs, {}, set(), True
        self.bookings = Bookings(self.offered.capacity)
        for uid, before in kept.items():
            if uid in view.jobs:
                job = self.jobs[uid] = self._new(view.jobs[uid])
                job.deadline, job.lent_room = before.deadline, before.lent_room
                if resources != self.offered.resources:
                    job.lent_room.take_back()
        self._paces = Paces()
        self._next_starts = DueTimes()

    def _new(self, known: KnownJob) -> PlannedJob:
        return PlannedJob(known, self.offered.capacity, self.offered.vector, self._stage_order)

    def _take_in(self, view: View, changed: Iterable[str], accounts: Iterable[str]) -> None:
        new = {uid for uid in changed if self._is_new(view, uid)}
        self.new_jobs.update(dict.fromkeys(new))
        in_turn, self._stages_taken = _in_turn(view, self.new_jobs, self._stages_taken, _stages_of)
        taken = sorted({*changed, *in_turn} - new.difference(in_turn))
        for uid in taken:
            self.new_jobs.pop(uid, None)
            self._count(view, uid)
        paths, is_other, differs = self.plain.count(view.shares(self._owner), self.offered, accounts)
        for path in paths:
            self.changes.record(path)
            self._book_plain(path)
        self._touched.update(dict.fromkeys(paths))
        self._has_new_claims |= is_other
        self._is_stale |= differs
        is_shared = self._is_to_share()
        if is_shared:
            shared = [self.jobs[uid] for uid in self._share(view)]
            for other in with_other_shares(shared, LEAST_CHANGE):
                self._unplanned.setdefault(other.known.job.uid, False)
        planned, self._stages_planned = _in_turn(view, self._unplanned, self._stages_planned, self._starts_of)
        for uid in planned:
            self._replan(view, uid, work_lost=self._unplanned.pop(uid))
        if is_shared and self._ends_differ:
            self._ends_differ = False
            self._choose_last()
        for uid in sorted({*taken, *planned}):
            if (job := self.jobs.get(uid)) is not None:
                self._book(view, uid, job)
                self._draw(view, uid, job)
                self._has_changed(uid, job)
                self.changed_plans.record(uid)

    def _starts_of(self, known: KnownJob) -> int:
        """What planning a job takes: its stages, or the starts of its plan if they are more."""
        job = self.jobs.get(known.job.uid)
        return 0 if job is None else max(len(known.stages), job.starts_of_plan)

    def _is_to_share(self) -> bool:
        """Whether shares are to be computed now.

        That a job wants no more changes no share, and who lends only if another has no rival now.
        """
        has_rivals = bool(self.plain.waiting) or len(self._wanting) > 1
        if self._wanting_differs:
            self._is_stale |= self._has_new_claims or not (has_rivals and self._had_rivals)
        self._wanting_differs, self._had_rivals = False, self._had_rivals and has_rivals
        if not self._is_stale or self._shared == SHARED_MOST:
            return False
        self._is_stale = self._has_new_claims = False
        self._kept_rivals, self._had_rivals = self._had_rivals, has_rivals
        self._shared += 1
        return True

    def _is_new(self, view: View, uid: str) -> bool:
        known, job = view.jobs.get(uid), self.jobs.get(uid)
        return known is not None and not known.is_done and (job is None or job.known is not known)

    def _has_changed(self, uid: str, job: PlannedJob) -> None:
        """What is due of the job, or may become so, has changed, and with it the ranks of its tasks."""
        self.changes.record(job.path)
        start = job.next_start(self.now)
        if self._is_bounded:
            start = min(start, job.next_booking(self.now))
        if start == inf:
            self._next_starts.discard(uid)
        else:
            self._next_starts.set(uid, start, uid)

    def _count(self, view: View, uid: str) -> None:
        """Bring the counts of one job up to date; into `_unplanned` if it is to be planned anew."""
        self._touched[uid] = None
        known, job = view.jobs.get(uid), self.jobs.get(uid)
        if known is None or known.is_done:
            if job is not None:
                self._books_differ |= self.bookings.drop(uid)
                self._next_starts.discard(uid)
                self.changed_plans.end(uid, job)
                del self.jobs[uid]
                self._ends_differ = True
                self._wanting.discard(uid)
                self._is_stale = True
            return
        if job is None or job.known is not known:
            job = self.jobs[uid] = self._new(known)
            self._unplanned.setdefault(uid, False)
            self._is_stale = True
        job.usage = self.offered.vector(view.shares(self._owner).held(job.path).items())
        before, job.counts = job.counts, job.count()
        for new, old in zip(job.counts, before, strict=True):
            is_again = new.to_start > old.to_start
            is_lost = is_again and new.lost > old.lost
            if is_again or new.succeeded != old.succeeded:
                self._unplanned[uid] = is_lost or self._unplanned.get(uid, False)
        if job.takes_other_limit():  # with a lower one it ends later, and not because it has lent
            self._unplanned[uid] = self._is_stale = True
        signature = known.job.weight, [each.is_done for each in job.counts]
        claims = known.job, [count.to_start + count.on_nodes for count in job.counts]
        self._is_stale |= signature != job.signature
        self._has_new_claims |= claims != job.claims
        job.signature, job.claims = signature, claims
        if job.wants_more != (uid in self._wanting):
            self._wanting ^= {uid}
            self._wanting_differs = True

    def _share(self, view: View) -> Collection[str]:
        """Compute the shares that may have changed; the uids of jobs that may have another one."""
        if self._is_bounded:
            self._books_differ |= self.bookings.keep(self.jobs.keys() | self.plain.by_path.keys())
        if not self.offered.capacity or not (self.jobs or self.plain.by_path):
            self.by_pool = None
            self._touched.clear()
            return ()
        concerns_all = self.by_pool is None or not self._kept_rivals
        uids, paths = self._set_shares(view)
        for uid in uids:
            self.changes.record(self.jobs[uid].path)
        for path in paths:
            self.changes.record(path)
            self._book_plain(path)
        for uid in self.jobs if concerns_all else uids:
            self._set_altruism(view, uid, self.jobs[uid])
        for uid in uids:
            if self.jobs[uid].plan is None:  # then it claims its share
                self._book(view, uid, self.jobs[uid])
        return uids

    def _set_shares(self, view: View) -> tuple[Collection[str], Collection[str]]:
        """The uids of jobs and the paths of plain pods that may have other shares."""
        touched, self._touched = self._touched, {}
        if not (self._by_namespace and view.pools.tree):
            set_shares(self.jobs, self.plain.by_path, self.offered.capacity, self._by_namespace)
            self.by_pool = None
            return self.jobs.keys(), self.plain.by_path.keys()
        if self.by_pool is None:
            self.by_pool = SharesByPool(view.pools, self.offered)
            touched = dict.fromkeys([*self.jobs, *self.plain.by_path])
        return self.by_pool.update(self.jobs, self.plain.by_path, touched)

    def _replan(self, view: View, uid: str, *, work_lost: bool) -> None:
        job = self.jobs.get(uid)
        if job is None:
            return
        self._touched[uid] = None
        job.seconds = [self._paces.expected_seconds(view, each) for each in job.known.job.stages]
        bookings = self.bookings if self._is_bounded else None
        self._ends_differ = True
        job.replan(view.now, view.placed.held_since, work_lost=work_lost, beside=bookings)
        self._book(view, uid, job)
        self._has_new_claims = True  # they take its run times, and its deadline has changed
        self._set_altruism(view, uid, job)

    def _choose_last(self) -> None:
        """When all work ends is up to the jobs that end last: what they have gained, they keep."""
        known = {uid: job for uid, job in self.jobs.items() if job.plan is not None}
        ends = np.array([job.deadline.at for job in known.values()])
        latest = np.argsort(-ends, kind="stable")[: int(len(known) * LAST_PART)]
        lends = np.ones(len(known), dtype=bool)
        lends[latest] = False
        for (uid, job), it_lends in zip(known.items(), lends.tolist(), strict=True):
            if it_lends != job.lends_gains:
                job.let_lend_gains(lends=it_lends)
                self._has_changed(uid, job)

    def _set_altruism(self, view: View, uid: str, job: PlannedJob) -> None:
        """With which probability the job lends, until its share or its plan is made anew."""
        level = job.known.job.altruism * self._altruism
        if self.by_pool is not None:
            level *= altruism_of(view.pools, job.pool)
        has_rival = bool(self.plain.waiting) or len(self._wanting) > (uid in self._wanting)
        may_lend = job.plan is not None and has_rival
        if job.lent_room.set_altruism(level if may_lend else 0.0):
            self.changes.record(job.path)
        self._draw(view, uid, job)

    def _draw(self, view: View, uid: str, job: PlannedJob) -> None:
        """Let chance decide whether the job lends what is free of its share: once in a step."""
        room = job.lent_room
        if not room.is_drawn:
            return
        room.keep_within(job.free)
        if uid not in self._drawn and job.keeps_room:
            self._drawn.add(uid)
            if view.rng.random() < room.altruism:
                room.lend(job.free)
                self.changes.record(job.path)

    def _book(self, view: View, uid: str, job: PlannedJob) -> None:
        if self._is_bounded:
            bookings = job.bookings(view.now, view.placed.held_since)
            self._books_differ |= self.bookings.set(uid, bookings, view.now)

    def _book_plain(self, path: str) -> None:
        """Pods of no job book what they hold, and their share if they want it, for ever."""
        if self._is_bounded:
            pods = self.plain.by_path[path]
            wanted = map(min, pods.share, added(pods.usage, pods.waiting))
            booking = Booking(-FOREVER, FOREVER, tuple(map(max, pods.usage, wanted)))
            self._books_differ |= self.bookings.set(path, [booking], self.now)

    def stage_of(self, view: View, task: Task) -> tuple[PlannedJob, int] | None:
        """The job of a task and the index of its stage; None if it belongs to no job that is planned."""
        found, job = view.jobs.of(task), self.jobs.get(task.job)
        if found is None or job is None or job.known is not found[0]:
            return None
        return job, found[0].stages.index(found[1])


def _stages_of(known: KnownJob) -> int:
    return len(known.stages)


def _in_turn(
    view: View, uids: dict[str, Any], stages: int, cost: Callable[[KnownJob], int]
) -> tuple[list[str], int]:
    """The jobs whose turn it is in a step, sorted, and its stages with theirs; `stages`: those before.

    Where not all have their turn, each namespace has a job in turn.
    """
    found: list[str] = []
    if not uids:
        uids.clear()  # an empty dict takes as long to iterate as when it was largest, until it is cleared
        return found, stages
    by_namespace: dict[str, list[tuple[str, int]]] = {}
    for uid in sorted(uids) if stages < STAGES_MOST else ():
        known = view.jobs.get(uid)
        namespace, more = ("", 0) if known is None else (known.job.namespace, cost(known))
        by_namespace.setdefault(namespace, []).append((uid, more))
    for uid, more in filter(None, chain.from_iterable(zip_longest(*by_namespace.values()))):
        if stages >= STAGES_MOST:
            break
        stages += more
        found.append(uid)
    return sorted(found), stages
