"""From what the fake kubelet recorded to times of jobs, and counts of what must not happen. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import msgspec

from eclectus_e2e.demo.dags.plan import DagPlan, DagPlans, TaskName, task_of
from eclectus_e2e.demo.dags.run import DagRun
from eclectus_e2e.demo.schedulers import CARBYNE
from eclectus_e2e.demo.stream.report import Summary, count_overcommits, summarise
from eclectus_e2e.demo.workload.arrivals import Arrival, WorkClass
from eclectus_e2e.demo.workload.queries import Query
from eclectus_e2e.pairs import Interval, mean_interval, ratio_interval
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.pod_times import PodRecord

MUCH_SLOWER = 0.8  # a job whose factor is below this took 25 % longer than under the other scheduler


class JobResult(msgspec.Struct, frozen=True):
    """One job. Seconds since the first job was created; None: it has not ended."""

    name: str
    created: float
    began: float | None  # its first task
    ended: float | None  # its last task

    @property
    def seconds(self) -> float | None:
        """Job completion time: from its creation to the end of its last task."""
        return None if self.ended is None else self.ended - self.created


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one scheduler's run measured."""

    job_seconds: Summary  # from the creation of a job to the end of its last task
    makespan: float  # from the first creation to the last end
    tasks: int
    lost: int  # tasks that never completed their work
    doubled: int  # tasks that completed more than once
    overcommitted: int  # refused by a kubelet for lack of room, or found by the audit
    early: int  # tasks that started before a task of a parent stage had ended
    late_seconds: Summary  # of creations
    jobs: list[JobResult]

    @property
    def sound(self) -> bool:
        """Whether nothing happened that must not."""
        return not (self.lost or self.doubled or self.overcommitted or self.early)


class Factors(msgspec.Struct, frozen=True):
    """Of the same jobs: their time under another scheduler over that under this one; above 1 is better."""

    mean: float  # of the two means, not of the factors
    median: float  # of the factors of jobs
    much_slower: float  # share of the jobs with a factor below MUCH_SLOWER


class Pair(msgspec.Struct, frozen=True):
    """The same jobs under each scheduler. `factors`: scheduler -> other scheduler -> factors."""

    schedulers: dict[str, Result]
    factors: dict[str, dict[str, Factors]]


class Compared(msgspec.Struct, frozen=True):
    """The factors of one scheduler against another over all pairs."""

    mean: Interval
    median: Interval
    much_slower: Interval


class DagReport(msgspec.Struct, frozen=True, kw_only=True):
    """The file build/demo/dags.json. `compared`: another scheduler -> factors against Carbyne."""

    seed: int
    nodes: int
    jobs: int
    pairs: list[Pair]
    compared: dict[str, Compared]
    sound: bool

    def results_of(self, scheduler: str) -> list[Result]:
        """The results of a scheduler, by pair."""
        return [pair.schedulers[scheduler] for pair in self.pairs]


def make_report(plans: DagPlans, runs: Sequence[DagRun]) -> DagReport:
    """The report of all runs of the pairs that were over."""
    first = plans.pairs[0]
    size = len(first.schedulers)
    pairs = [
        _pair(plan, runs[at * size : (at + 1) * size])
        for at, plan in enumerate(plans.pairs[: len(runs) // size])
    ]
    return DagReport(
        seed=first.seed,
        nodes=len(first.nodes),
        jobs=len(first.jobs),
        pairs=pairs,
        compared={
            other: _compared([pair.factors[CARBYNE][other] for pair in pairs])
            for other in pairs[0].factors.get(CARBYNE, {})
        },
        sound=all(result.sound for pair in pairs for result in pair.schedulers.values()),
    )


def _pair(plan: DagPlan, runs: Sequence[DagRun]) -> Pair:
    of = {run.scheduler: make_result(run, plan.jobs, plan.nodes) for run in runs}
    results = {name: of[name] for name in plan.schedulers}
    factors = {
        one: {other: _factors(results[one], results[other]) for other in results if other != one}
        for one in results
    }
    return Pair(results, factors)


def _compared(factors: Sequence[Factors]) -> Compared:
    return Compared(
        ratio_interval([each.mean for each in factors]),
        ratio_interval([each.median for each in factors]),
        mean_interval([each.much_slower for each in factors]),
    )


def make_result(run: DagRun, jobs: Sequence[Query], nodes: Sequence[NodeSpec]) -> Result:
    """Compute times and counts of one run."""
    done = succeeded(run.entries)
    times = Counter(
        task for entry in run.entries if entry.outcome == "succeeded" and (task := task_of(entry.name))
    )
    planned = [
        TaskName(job.name, stage.name, at)
        for job in jobs
        for stage in job.stages
        for at in range(stage.tasks)
    ]
    first = min(run.sent.values())
    found = [_job_result(job, run.sent[job.name] - first, first, done) for job in jobs]
    seconds = [each.seconds for each in found if each.seconds is not None]
    return Result(
        job_seconds=summarise(seconds),
        makespan=max((each.ended for each in found if each.ended is not None), default=0.0),
        tasks=len(planned),
        lost=sum(task not in done for task in planned),
        doubled=sum(count > 1 for count in times.values()),
        overcommitted=run.counters.overcommitted
        + count_overcommits(run.entries, _arrivals(run, jobs), nodes),
        early=sum(_early(job, done) for job in jobs),
        late_seconds=summarise(run.late_seconds),
        jobs=found,
    )


def succeeded(entries: Sequence[PodRecord]) -> dict[TaskName, PodRecord]:
    """The record of each task that completed its work."""
    return dict(_succeeded(entries))


def _succeeded(entries: Sequence[PodRecord]) -> Iterator[tuple[TaskName, PodRecord]]:
    for entry in entries:
        task = task_of(entry.name)
        if task is not None and entry.outcome == "succeeded":
            yield task, entry


def _job_result(job: Query, created: float, first: float, done: Mapping[TaskName, PodRecord]) -> JobResult:
    records = [entry for task, entry in done.items() if task.job == job.name]
    began = min((entry.started - first for entry in records), default=None)
    has_ended = len(records) == job.pods
    return JobResult(
        job.name, created, began, max(each.finished for each in records) - first if has_ended else None
    )


def _early(job: Query, done: Mapping[TaskName, PodRecord]) -> int:
    """Tasks of a job that started before its parents had ended."""
    records: dict[str, list[PodRecord]] = defaultdict(list)
    for task, entry in done.items():
        if task.job == job.name:
            records[task.stage].append(entry)
    return sum(
        entry.started < max((each.finished for name in stage.parents for each in records[name]), default=0.0)
        for stage in job.stages
        for entry in records[stage.name]
    )


def _arrivals(run: DagRun, jobs: Sequence[Query]) -> dict[str, Arrival]:
    """The pods as the audit of over-commits knows them."""
    kinds = {(job.name, stage.name): stage for job in jobs for stage in job.stages}
    found = {}
    for entry in run.entries:
        task = task_of(entry.name)
        stage = kinds[task.job, task.stage] if task else None
        cpu = stage.kind.cpu_millicores if stage else 0
        found[entry.name] = Arrival(0, 0.0, WorkClass("", 0.0, cpu, 0.0, 1.0), 0.0, None)
    return found


def _factors(one: Result, other: Result) -> Factors:
    pairs = [
        theirs.seconds / ours.seconds
        for ours, theirs in zip(one.jobs, other.jobs, strict=True)
        if ours.seconds and theirs.seconds
    ]
    if not pairs:
        return Factors(float("nan"), float("nan"), float("nan"))
    much_slower = sum(pair < MUCH_SLOWER for pair in pairs) / len(pairs)
    return Factors(other.job_seconds.mean / one.job_seconds.mean, median(pairs), much_slower)
