"""What is planned for DAG jobs, written to their status when something of note has changed.

A plan must survive a restart, so it is written; every write costs a request, so it is written at most every
`WRITE_SECONDS` for each job, the last one at once. `finish_seconds` grows shorter with the clock, and is no
change by itself; nor is what a job has lent and borrowed in all, which is written with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from math import inf

from msgspec.structs import replace

from eclectus.engine.accounts.lending import Lending
from eclectus.engine.counters import PlanCounters
from eclectus.framework import JobPlanner, Policy, Profile, View
from eclectus.framework.jobs import KnownJobs
from eclectus.model.commands import RecordPlan
from eclectus.model.job import JobPlan

WRITE_SECONDS = 15.0  # at least, between two writes for one job: a few a minute


class PlanRecords:
    """The plans that Orders make, and when each was last written."""

    def __init__(
        self,
        profiles: Iterable[Profile],
        jobs: KnownJobs | None,
        counters: PlanCounters,
        fault: Callable[[Policy, str], None],
    ) -> None:
        self._orders = [each.order for each in profiles if isinstance(each.order, JobPlanner)]
        self._jobs, self._fault = jobs, fault
        self._lending = Lending(counters)
        self._written: dict[str, tuple[float, JobPlan]] = {}  # by job: when, seconds, and what
        self._unwritten: dict[str, JobPlan] = {}
        self._queue: list[tuple[float, int, str]] = []  # when each may be written, and void entries
        self._serial = 0
        self.next_due = inf  # when a plan that has changed may be written, seconds; written here only

    def due(self, view: View) -> Iterator[RecordPlan]:
        """Ask the Orders for plans, and take those that are to be written now."""
        if not self._orders or self._jobs is None:
            return
        for order in self._orders:
            self._ask(order, self._jobs, view)
        self._lending.advance(view.now)
        queue = self._queue
        while queue and (queue[0][0] <= view.now or queue[0][2] not in self._unwritten):
            _, _, uid = heappop(queue)
            plan = self._unwritten.pop(uid, None)
            if plan is None or uid not in self._jobs:
                continue  # it is as it was written, or its job is gone
            self._written[uid] = (view.now, plan)
            job = self._jobs[uid].job
            yield RecordPlan(uid, job.namespace, job.name, self._lending.with_totals(uid, plan, view.now))
        self.next_due = queue[0][0] if queue else inf
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
                else:
                    self._unwritten.pop(uid, None)
        except Exception as error:  # a plug-in's defect must not stop the others
            self._fault(order, f"{type(error).__name__}: {error}")

    def _enqueue(self, uid: str, plan: JobPlan) -> None:
        """The plan is to be written, in place of one that waits; the last one of a job at once."""
        if uid not in self._unwritten or not plan.share:
            at = self._written[uid][0] + WRITE_SECONDS if plan.share and uid in self._written else -inf
            self._serial += 1
            heappush(self._queue, (at, self._serial, uid))
        self._unwritten[uid] = plan


def _of_note(plan: JobPlan) -> JobPlan:
    return replace(plan, finish_seconds=None)
