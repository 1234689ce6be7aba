"""What DAG jobs have lent and borrowed, added up over time: for the status of each, and for metrics.

A plan says what of its job is lent and borrowed now. That is in force until the next plan of the job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass

from msgspec.structs import replace

from eclectus.engine.counters import PlanCounters
from eclectus.model.job import Job, JobPlan
from eclectus.model.objects import Amounts


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


@dataclass
class _Account:
    plan: JobPlan  # in force
    lent: Integral
    borrowed: Integral


class Lending:
    """By job, and of all jobs in `counters`."""

    def __init__(self, counters: PlanCounters) -> None:
        self._counters = counters
        self._lent = Integral(counters.lent_seconds, 0.0)
        self._borrowed = Integral(counters.borrowed_seconds, 0.0)
        self._accounts: dict[str, _Account] = {}  # by uid of the job

    def __len__(self) -> int:
        return len(self._accounts)

    def note(self, job: Job, plan: JobPlan, now: float) -> None:
        """This plan is in force from now on."""
        account = self._accounts.get(job.uid)
        if account is None:
            account = self._accounts[job.uid] = _account(job, now)
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


def _account(job: Job, now: float) -> _Account:
    """Of a job that is new here: it goes on from what was written before."""
    written = JobPlan((), None, None, job.slips, job.slip_seconds)
    lent, borrowed = dict[str, float](job.lent_seconds), dict[str, float](job.borrowed_seconds)
    return _Account(written, Integral(lent, now), Integral(borrowed, now))
