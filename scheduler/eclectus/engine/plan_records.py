"""What is planned for DAG jobs, written to their status when something of note has changed.

A plan must survive a restart, so it is written; every write costs a request, so it is written at most every
`WRITE_SECONDS` for each job, the last one at once. `finish_seconds` grows shorter with the clock, and is no
change by itself; nor is what a job has lent and borrowed in all, which is written with the rest.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from eclectus.accounts.known_jobs import KnownJobs
from eclectus.cluster.due_times import DueTimes
from eclectus.engine.counters import PlanCounters
from eclectus.framework import JobPlanner, Policy, Profile, View
from eclectus.model.commands import RecordPlan
from eclectus.model.job import Job, JobPlan
from eclectus.model.objects import Amounts

WRITE_SECONDS = 15.0  # at least, between two writes for one job: a few a minute


class Integral:
    """An amount of each resource, added up over time into `total`: amounts times seconds."""

    def __init__(self, total: dict[str, float], now: float) -> None:
        self.total = total
        self._held = Counter[str]()  # amounts are whole numbers, so that no error accumulates
        self._since = now

    def advance(self, now: float) -> None:
        """Add up to this time; one before the last adds nothing."""
        seconds = now - self._since
        if seconds > 0.0:
            for name, amount in self._held.items():
                if amount:
                    self.total[name] = self.total.get(name, 0.0) + amount * seconds
            self._since = now

    def change(self, before: Amounts, after: Amounts, now: float) -> None:
        """From this time on an amount is another one."""
        self.advance(now)
        self._held.subtract(dict(before))
        self._held.update(dict(after))

    def amounts(self) -> Amounts:
        """What has been added up, in whole numbers."""
        return tuple(sorted((name, round(sum_)) for name, sum_ in self.total.items() if round(sum_)))


class _Lent(Struct):
    """The plan of a job, and what it has lent and borrowed."""

    plan: JobPlan  # in force
    lent: Integral
    borrowed: Integral


class Lending:
    """What DAG jobs have lent and borrowed, by job, and of all jobs in `counters`: for status and metrics.

    A plan says what of its job is lent and borrowed now. That is in force until the next plan of the job.
    """

    def __init__(self, counters: PlanCounters) -> None:
        self._counters = counters
        self._lent = Integral(counters.lent_seconds, 0.0)
        self._borrowed = Integral(counters.borrowed_seconds, 0.0)
        self._accounts: dict[str, _Lent] = {}  # by uid of the job

    def __len__(self) -> int:
        return len(self._accounts)

    def note(self, job: Job, plan: JobPlan, now: float) -> None:
        """This plan is in force from now on."""
        account = self._accounts.get(job.uid)
        if account is None:
            account = self._accounts[job.uid] = _lent_before(job, now)
        counters, before = self._counters, account.plan
        counters.made += 1
        counters.slips += max(plan.slips - before.slips, 0)
        counters.slip_seconds += max(plan.slip_seconds - before.slip_seconds, 0.0)
        for each in (account.lent, self._lent):
            each.change(before.lent, plan.lent, now)
        for each in (account.borrowed, self._borrowed):
            each.change(before.borrowed, plan.borrowed, now)
        account.plan = plan

    def advance(self, now: float) -> None:
        """Count for all jobs up to now."""
        self._lent.advance(now)
        self._borrowed.advance(now)

    def with_totals(self, uid: str, plan: JobPlan, now: float) -> JobPlan:
        """The plan with what its job has lent and borrowed in all, up to now."""
        account = self._accounts[uid]
        account.lent.advance(now)
        account.borrowed.advance(now)
        return replace(plan, lent_seconds=account.lent.amounts(), borrowed_seconds=account.borrowed.amounts())

    def keep(self, uids: Container[str], now: float) -> None:
        """Forget all other jobs."""
        for uid in [uid for uid in self._accounts if uid not in uids]:
            plan = self._accounts.pop(uid).plan
            self._lent.change(plan.lent, (), now)
            self._borrowed.change(plan.borrowed, (), now)


def _lent_before(job: Job, now: float) -> _Lent:
    """Of a job that is new here: it goes on from what was written before."""
    written = JobPlan((), None, None, job.slips, job.slip_seconds)
    lent, borrowed = dict[str, float](job.lent_seconds), dict[str, float](job.borrowed_seconds)
    return _Lent(written, Integral(lent, now), Integral(borrowed, now))


class PlanRecords:
    """The plans that Orders make, and when each was last written."""

    def __init__(
        self,
        profiles: Iterable[Profile],
        jobs: KnownJobs | None,
        counters: PlanCounters,
        fault: Callable[[Policy, str], None],
    ) -> None:
        # Of profiles that plan jobs; nothing else need be called while there are none.
        self.orders: Sequence[JobPlanner] = [
            each.order for each in profiles if isinstance(each.order, JobPlanner) and jobs is not None
        ]
        self._jobs = jobs
        self._fault = fault
        self._lending = Lending(counters)
        self._written: dict[str, tuple[float, JobPlan]] = {}  # by job: when, seconds, and what
        self._unwritten: dict[str, JobPlan] = {}
        self._due = DueTimes[str]()  # when each of them may be written
        self.next_due = inf  # when a plan that has changed may be written, seconds; written here only

    def due(self, view: View) -> Iterator[RecordPlan]:
        """Ask the Orders for plans, and take those that are to be written now."""
        if self._jobs is None:
            return
        for order in self.orders:
            self._ask(order, self._jobs, view)
        self._lending.advance(view.now)
        for uid in self._due.take_due(view.now):
            plan = self._unwritten.pop(uid)
            if uid not in self._jobs:
                continue
            self._written[uid] = (view.now, plan)
            job = self._jobs[uid].job
            yield RecordPlan(uid, job.namespace, job.name, self._lending.with_totals(uid, plan, view.now))
        self.next_due = self._due.next_due()
        if any(order.is_behind for order in self.orders):
            self.next_due = view.now
        if len(self._lending) > len(self._jobs):
            self._lending.keep(self._jobs, view.now)
        if len(self._written) > 2 * len(self._jobs):
            self._written = {uid: each for uid, each in self._written.items() if uid in self._jobs}

    def _ask(self, order: JobPlanner, jobs: KnownJobs, view: View) -> None:
        try:
            for uid, plan in order.plans(view):
                if uid in jobs:
                    self._lending.note(jobs[uid].job, plan, view.now)
                written = self._written.get(uid)
                if written is None or _of_note(written[1]) != _of_note(plan):
                    self._enqueue(uid, plan)
                elif self._due.discard(uid):  # it is as it was written
                    del self._unwritten[uid]
        except Exception as error:  # a plug-in's defect must not stop the others
            self._fault(order, f"{type(error).__name__}: {error}")

    def _enqueue(self, uid: str, plan: JobPlan) -> None:
        """The plan is to be written, in place of one that waits; the last one of a job at once."""
        if uid not in self._unwritten or not plan.share:
            at = self._written[uid][0] + WRITE_SECONDS if plan.share and uid in self._written else -inf
            self._due.set(uid, at)
        self._unwritten[uid] = plan


def _of_note(plan: JobPlan) -> JobPlan:
    return replace(plan, finish_seconds=None)
