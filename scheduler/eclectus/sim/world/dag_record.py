"""This module records the responses of jobs with stages, and how fairly the cluster was shared among them.

A job is entitled to 1/N of the cluster, N being the number of jobs at that moment. It receives its dominant
share: the largest share of a resource of all machines that its running tasks hold (Ghodsi and others,
NSDI 2011). Jain's index is that of received over entitled in windows of equal length, over the jobs that have
waiting tasks from the beginning to the end of a window: for others, holding little is no loss. The yardstick
of a job's response is the time that it would take on a part of the cluster that it has to itself.

Unlike the rest of the record it keeps each job, so that runs can be compared job by job.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import inf

from msgspec import Struct

from eclectus.model.job import JobPlan
from eclectus.model.objects import Node
from eclectus.sim.base.machine import TaskRun
from eclectus.sim.base.results import DagJob, DagResult
from eclectus.sim.base.work import WINDOW_SECONDS, Dag, Stage

CLOSE = 1e-9  # relative: shares are fractions of amounts


def seconds_alone(dag: Dag, sizes: Sequence[Sequence[float]], share: Mapping[str, float]) -> float:
    """Time until the last task ends inside these amounts, in seconds at speed 1.

    `sizes`: of the tasks of each stage. Tasks start as soon as they fit, those of the stage with the longest
    path to the end of the job first (list scheduling by bottom levels, Hu 1961). The amounts are one pool,
    not nodes. A task that is larger than they are has what it lacks to itself.
    """
    free, running = dict(share), list[tuple[float, int]]()  # end and stage of each task
    left = [list(each) for each in sizes]
    parents = [len(stage.parents) for stage in dag.stages]
    unfinished = [len(each) for each in sizes]
    ready = [at for at, count in enumerate(parents) if not count]
    now = 0.0
    while any(unfinished):
        for at in sorted(ready, key=lambda at: -dag.stages[at].path):
            while left[at] and _fits(dag.stages[at], free, share):
                _take(dag.stages[at], free, 1)
                heappush(running, (now + left[at].pop(), at))
        now, at = heappop(running)
        _take(dag.stages[at], free, -1)
        unfinished[at] -= 1
        if not unfinished[at]:
            ready.remove(at)
            for child in dag.stages[at].children:
                parents[child] -= 1
                if not parents[child]:
                    ready.append(child)
    return now


def _fits(stage: Stage, free: Mapping[str, float], share: Mapping[str, float]) -> bool:
    """Whether one more task fits; the first is counted as no larger than the share."""
    return all(
        min(amount, share.get(name, inf)) <= free.get(name, inf) + CLOSE * amount
        for name, amount in stage.work_class.demand
        if amount
    )


def _take(stage: Stage, free: dict[str, float], times: int) -> None:
    for name, amount in stage.work_class.demand:
        if name in free:
            free[name] -= times * amount


class _Job(Struct):
    """A job that has not ended."""

    dag: Dag
    sizes: Sequence[Sequence[float]]
    measured: bool
    arrived: float
    number_seconds: float  # integral of the number of jobs when it arrived
    since: float  # until when it is accounted for
    held: dict[str, int]  # by its running tasks
    waiting: int = 0
    share: float = 0.0  # dominant
    received: float = 0.0  # in this window, share-seconds
    backlogged: bool = False  # since the beginning of this window
    plan: JobPlan | None = None


class DagRecord:
    """The record of one run; `StagedJobs` calls it at every change, in order of time."""

    def __init__(self, nodes: Iterable[Node], window_seconds: float = WINDOW_SECONDS) -> None:
        """`nodes`: all, as they are at first; what fails later does not change what jobs are entitled to."""
        # Called with a begin, an end, and the dominant shares that jobs have between the two.
        self.on_interval: Callable[[float, float, Mapping[int, float]], None] | None = None
        self._window_seconds = window_seconds
        self._capacity: Counter[str] = Counter()
        for node in nodes:
            self._capacity.update(dict(node.allocatable))
        self._jobs: dict[int, _Job] = {}
        self._ended: list[DagJob] = []
        self._indices: list[float] = []  # Jain's, of each window that counts
        self._now = self._window_end = self._number_seconds = 0.0
        self._below = self._above = self._slip_seconds = 0.0
        self._lost = self._slips = 0

    def arrive(
        self, number: int, dag: Dag, sizes: Sequence[Sequence[float]], measured: bool, now: float
    ) -> None:
        """A job arrives; `sizes` are the true ones of the tasks of each stage."""
        self._advance(now)
        self._settle_all()
        self._jobs[number] = _Job(dag, sizes, measured, now, self._number_seconds, now, {})

    def submit(self, number: int, tasks: int, now: float) -> None:
        """Tasks of a job wait from now on."""
        self._settle(number, now).waiting += tasks

    def start(self, run: TaskRun, now: float) -> None:
        """A waiting task has started."""
        job = self._settle(run.job, now)
        job.waiting -= 1
        job.backlogged = job.backlogged and job.waiting > 0
        self._hold(job, run, 1)

    def end(self, run: TaskRun, now: float) -> None:
        """A running task has ended."""
        self._hold(self._settle(run.job, now), run, -1)

    def lose(self, run: TaskRun, now: float) -> None:
        """A running task was lost and waits again."""
        job = self._settle(run.job, now)
        job.waiting += 1
        self._lost += 1
        self._hold(job, run, -1)

    def plan(self, number: int, plan: JobPlan) -> None:
        """The scheduler has written a plan for the job; it counts slips since the job's arrival."""
        self._jobs[number].plan = plan

    def finish(self, number: int, now: float) -> None:
        """All tasks of the job have ended."""
        self._advance(now)
        self._settle_all()
        job = self._jobs.pop(number)
        if job.plan is not None:
            self._slips += job.plan.slips
            self._slip_seconds += job.plan.slip_seconds
        if job.measured:
            response = now - job.arrived
            number_mean = (self._number_seconds - job.number_seconds) / response if response else 1.0
            share = {name: amount / number_mean for name, amount in self._capacity.items()}
            alone = seconds_alone(job.dag, job.sizes, share)
            self._ended.append(DagJob(number, job.dag.name, job.dag.tasks, job.arrived, response, alone))

    @property
    def has_jobs(self) -> bool:
        """Whether any job with stages has arrived."""
        return self._window_end > 0

    def result(self) -> DagResult:
        """What has been recorded so far."""
        indices = self._indices
        return DagResult(
            jobs=self._ended,
            fairness=sum(indices) / len(indices) if indices else None,
            fairness_least=min(indices, default=None),
            windows=len(indices),
            below_share=self._below,
            above_share=self._above,
            lost=self._lost,
            slips=self._slips,
            slip_seconds=self._slip_seconds,
        )

    def _advance(self, now: float) -> None:
        """To `now`, past the ends of windows; the number of jobs has not changed since the last call."""
        while self._window_end <= now:
            self._integrate(self._window_end)
            self._settle_all()
            self._close_window()
            # Without jobs, no window has anything to show: the next one begins now.
            self._window_end = (self._window_end if self._jobs else now) + self._window_seconds
        self._integrate(now)

    def _integrate(self, at: float) -> None:
        if self.on_interval is not None and at > self._now:
            self.on_interval(self._now, at, {number: job.share for number, job in self._jobs.items()})
        self._number_seconds += (at - self._now) * len(self._jobs)
        self._now = at

    def _settle(self, number: int, now: float) -> _Job:
        """The job, accounted for until now."""
        self._advance(now)
        job = self._jobs[number]
        self._account(job)
        return job

    def _settle_all(self) -> None:
        """Before the number of jobs changes."""
        for job in self._jobs.values():
            self._account(job)

    def _account(self, job: _Job) -> None:
        passed = self._now - job.since
        if passed:
            above = job.share - 1.0 / len(self._jobs)
            job.received += passed * job.share
            if above > 0:
                self._above += passed * above
            elif job.waiting:
                self._below -= passed * above
            job.since = self._now

    def _close_window(self) -> None:
        received = [job.received for job in self._jobs.values() if job.backlogged]
        if len(received) > 1 and any(received):
            self._indices.append(jain_index(received))
        for job in self._jobs.values():
            job.received, job.backlogged = 0.0, job.waiting > 0

    def _hold(self, job: _Job, run: TaskRun, times: int) -> None:
        held = job.held
        for name, amount in run.work_class.demand:
            held[name] = held.get(name, 0) + times * amount
        capacity = self._capacity
        job.share = max(amount / capacity[name] for name, amount in held.items() if capacity[name])


def jain_index(values: Sequence[float]) -> float:
    """From 1/n, where one has everything, to 1, where all have the same (Jain, Chiu, Hawe, 1984)."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))
