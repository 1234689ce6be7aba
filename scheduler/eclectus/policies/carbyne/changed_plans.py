"""The plans of jobs that have changed since they were last taken, as they are written to the jobs' status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from eclectus.framework import JobPlan
from eclectus.policies.carbyne.offered import Offered
from eclectus.policies.carbyne.planned_job import PlannedJob


class ChangedPlans:
    """Whose plans are to be taken, and the last plans of jobs that are done or gone."""

    def __init__(self) -> None:
        self._changed: dict[str, None] = {}  # uids, in their order
        self._last: dict[str, JobPlan] = {}  # by uid

    def record(self, uid: str) -> None:
        """The plan of a job has changed."""
        self._changed[uid] = None

    def end(self, uid: str, job: PlannedJob) -> None:
        """The job is done, or gone: nothing of it is lent or borrowed any more."""
        deadline = job.deadline
        at = None if deadline.at == inf else deadline.at
        self._last[uid] = JobPlan((), 0.0, at, deadline.slips, deadline.slip_seconds)

    def take(self, jobs: Mapping[str, PlannedJob], offered: Offered) -> Iterator[tuple[str, JobPlan]]:
        """Uid and plan of each job whose plan has changed since the last call."""
        changed, self._changed = self._changed, {}
        ended, self._last = self._last, {}
        yield from ended.items()
        for uid in changed:
            job = jobs.get(uid)
            if job is not None:
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
