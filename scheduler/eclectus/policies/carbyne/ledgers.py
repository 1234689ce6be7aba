"""What is kept of all jobs: what they may still take, when tasks become due, and which plans have changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from math import inf

from eclectus.framework import JobPlan
from eclectus.policies.carbyne.planned_job import PlannedJob
from eclectus.policies.carbyne.sharing import Offered, Vector


class Entitlements:
    """By job, and added up."""

    def __init__(self) -> None:
        self._by_job: dict[str, Vector] = {}  # by uid
        self._all: list[float] = []
        self._next_due: dict[str, float] = {}  # by uid, seconds

    def clear(self, resources: int) -> None:
        """Forget all jobs; from now on there are so many resources. Also because sums of floats drift."""
        self._by_job, self._next_due, self._all = {}, {}, [0.0] * resources

    def set(self, uid: str, entitled: Vector, next_due: float) -> None:
        """What a job may still take of its share, and when it needs room that it lends, seconds."""
        self._next_due[uid] = next_due
        self._add(entitled, 1)
        self._add(self._by_job.get(uid, ()), -1)
        self._by_job[uid] = entitled

    def drop(self, uid: str) -> None:
        """The job is done, or gone; no error if it was not known."""
        self._add(self._by_job.pop(uid, ()), -1)
        self._next_due.pop(uid, None)

    def leave_room(self, uid: str, demand: Vector, held: Vector, capacity: Vector) -> bool:
        """Whether beside a job's demand and what all hold there is room for what all others may take."""
        own = self._by_job.get(uid, (0.0,) * len(self._all))
        return all(
            not amount or used + amount + of_all - mine <= most
            for amount, used, of_all, mine, most in zip(demand, held, self._all, own, capacity, strict=True)
        )

    def next_due(self, uid: str) -> float:
        """When the first job other than this one needs room that it lends, seconds; inf for never."""
        return min((at for each, at in self._next_due.items() if each != uid), default=inf)

    def _add(self, entitled: Vector, sign: int) -> None:
        for at, amount in enumerate(entitled):
            self._all[at] += sign * amount


SPARE = 16  # void entries of the heap that are always allowed


class NextStarts:
    """One time for each job, seconds; those whose time has come are found without asking the others."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}  # by uid
        self._heap: list[tuple[float, str]] = []  # those of them, and void entries

    def clear(self) -> None:
        """Forget all jobs."""
        self._at.clear()
        self._heap.clear()

    def set(self, uid: str, at: float) -> None:
        """The next task of the job becomes due at this time; inf: none does."""
        if at == inf:
            self.drop(uid)
        elif self._at.get(uid) != at:
            self._at[uid] = at
            heappush(self._heap, (at, uid))
            if len(self._heap) > 2 * len(self._at) + SPARE:
                self._heap = [(each, of) for of, each in self._at.items()]
                heapify(self._heap)

    def drop(self, uid: str) -> None:
        """The job is gone, or has nothing more to start; no error if it was not known."""
        self._at.pop(uid, None)

    def take(self, now: float) -> list[str]:
        """The jobs whose time has come, which have none from then on."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, uid = heappop(self._heap)
            if self._at.get(uid) == at:
                del self._at[uid]
                found.append(uid)
        return found


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
