"""Jobs that have arrived: when their pods are submitted, and how a watch shows the pods later.

Most jobs submit all tasks at once. A job with `parallelism` keeps only so many pods at a time, as a
Kubernetes Job does. Of a job with stages, the pods of a stage are submitted together when all tasks of its
parents have ended, as an operator of such jobs would do, and carry the job's critical path and remaining work
as estimated. A lost task is submitted again, and the children of its stage wait for it. The scheduler gets
the job itself, when it arrives and whenever a stage or an attempt has ended, if its policies want to know
jobs. Where a stage declares no estimate, that of its last runs counts.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from statistics import median
from typing import Any

from msgspec.structs import replace

from eclectus.maths.longest_paths import longest_paths
from eclectus.model.commands import RecordPlan
from eclectus.model.events import Event, JobGone, JobSeen
from eclectus.model.job import Job, JobPlan, JobStage
from eclectus.model.objects import Phase, Task
from eclectus.sim.base.machine import TaskRun
from eclectus.sim.base.work import Arrival, Dag, WorkClass
from eclectus.sim.world.dag_record import DagRecord
from eclectus.sim.world.gangs import gang_key

NAMESPACE = "default"  # of jobs with stages


class StagedJob:
    """One job; lists are by stage."""

    def __init__(
        self,
        number: int,
        dag: Dag,
        sizes: Iterable[float],
        estimates: Sequence[float | None] | None,
        *,
        profile: str,
        now: float,
    ) -> None:
        """`estimates` of the run time of a task at speed 1, seconds; None: the true means."""
        self.number = number
        self.name = f"job-{number}"
        self.dag = dag
        self.profile = profile
        self.arrived = now
        left = iter(sizes)
        self.sizes = [tuple(islice(left, stage.tasks)) for stage in dag.stages]
        self.estimates = tuple(stage.seconds for stage in dag.stages) if estimates is None else estimates
        stages = [(at, stage.parents) for at, stage in enumerate(dag.stages)]
        self.paths = longest_paths(stages, dict(enumerate(self.estimates)))
        self.unstarted = [stage.tasks for stage in dag.stages]
        self.unfinished = [stage.tasks for stage in dag.stages]
        self.unfinished_parents = [len(stage.parents) for stage in dag.stages]
        self.run_times: list[list[float]] = [[] for _ in dag.stages]
        self.plan: JobPlan | None = None  # as the scheduler wrote it last

    @property
    def work(self) -> float | None:
        """Estimated work of all tasks that have not started, in seconds; None if some is unknown."""
        total = 0.0
        for tasks, seconds in zip(self.unstarted, self.estimates, strict=True):
            if tasks and seconds is None:
                return None
            total += tasks * (seconds or 0.0)
        return total

    def stage_ended(self, at: int) -> list[int]:
        """All tasks of the stage have ended; returns the stages that may start now."""
        children = self.dag.stages[at].children
        for child in children:
            self.unfinished_parents[child] -= 1
        return [child for child in children if not self.unfinished_parents[child]]

    def as_seen(self) -> Job:
        """The job as a watch shows it, with what was written into its status."""
        stages = tuple(
            JobStage(
                stage.name,
                stage.tasks,
                stage.work_class.spec,
                stage.work_class.name,
                self.estimates[at],
                stage.parents,
                stage.tasks - self.unfinished[at],
            )
            for at, stage in enumerate(self.dag.stages)
        )
        job, plan = Job(self.name, NAMESPACE, self.name, stages, self.arrived), self.plan
        if plan is None:
            return job
        return replace(job, deadline=plan.deadline, slips=plan.slips, slip_seconds=plan.slip_seconds)


class History:
    """The run times of the last runs of each stage, by the names of job and stage."""

    def __init__(self, runs: int) -> None:
        self._runs: dict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=runs))

    def add(self, job: str, stage: str, seconds: Sequence[float]) -> None:
        """A stage has ended, whose tasks ran for so long; one outlier among them counts little."""
        self._runs[job, stage].append(median(seconds))

    def estimates(self, dag: Dag) -> tuple[float | None, ...]:
        """For each stage the median of its last runs, seconds; None before its first run has ended."""
        known = [self._runs.get((dag.name, stage.name)) for stage in dag.stages]
        return tuple(median(runs) if runs else None for runs in known)


class StageTaskRun(TaskRun, kw_only=True):
    """A task of a stage."""

    stage: int


class StagedJobs:
    """All jobs with stages that have arrived and not ended."""

    def __init__(
        self, record: DagRecord, history: History | None, notify: Callable[[Event], None] | None
    ) -> None:
        """`history`: where estimates come from, if not from arrivals; `notify`: called with jobs."""
        self.record = record
        self._history = history
        self._notify = notify
        self._jobs: dict[int, StagedJob] = {}

    def arrive(
        self, number: int, arrival: Arrival, dag: Dag, now: float, *, profile: str, measured: bool
    ) -> list[StageTaskRun]:
        """A job arrives, with the true sizes of its tasks; returns the tasks to submit now."""
        estimates = arrival.estimates if self._history is None else self._history.estimates(dag)
        job = self._jobs[number] = StagedJob(number, dag, arrival.sizes, estimates, profile=profile, now=now)
        self.record.arrive(number, dag, job.sizes, measured, now)
        self._show(job)
        roots = [at for at, count in enumerate(job.unfinished_parents) if not count]
        return [run for at in roots for run in self._release(job, at, now)]

    def start(self, run: StageTaskRun, now: float) -> None:
        """The task has started."""
        self._jobs[run.job].unstarted[run.stage] -= 1
        self.record.start(run, now)

    def lose(self, run: StageTaskRun, now: float) -> float | None:
        """A started task was lost and must start again; returns its job's unstarted work, in seconds."""
        job = self._jobs[run.job]
        job.unstarted[run.stage] += 1
        self.record.lose(run, now)
        self._show(job)
        return job.work

    def end(self, run: StageTaskRun, now: float) -> list[StageTaskRun]:
        """The task has ended; returns the tasks to submit now."""
        job = self._jobs[run.job]
        self.record.end(run, now)
        job.unfinished[run.stage] -= 1
        if self._history is not None:
            job.run_times[run.stage].append(now - run.started)
        if job.unfinished[run.stage]:
            return []
        ready = job.stage_ended(run.stage)
        if self._history is not None:
            stage = job.dag.stages[run.stage]
            self._history.add(job.dag.name, stage.name, job.run_times[run.stage])
        if any(job.unfinished):
            self._show(job)
        else:
            del self._jobs[job.number]
            self.record.finish(job.number, now)
            if self._notify is not None:
                self._notify(JobGone(job.name))
        return [each for at in ready for each in self._release(job, at, now)]

    def record_plan(self, command: RecordPlan) -> None:
        """The scheduler writes its plan into the status of a job, which keeps it from now on."""
        number = int(command.uid.removeprefix("job-"))
        if number in self._jobs:
            self._jobs[number].plan = command.plan
            self.record.plan(number, command.plan)

    def _show(self, job: StagedJob) -> None:
        if self._notify is not None:
            self._notify(JobSeen(job.as_seen()))

    def _release(self, job: StagedJob, at: int, now: float) -> Iterator[StageTaskRun]:
        stage, work = job.dag.stages[at], job.work
        self.record.submit(job.number, len(job.sizes[at]), now)
        for index, size in enumerate(job.sizes[at]):
            name = f"{job.name}-{at}.{index}"
            of_stage = {"stage": stage.name, "estimate": job.estimates[at], "path": job.paths[at]}
            task = _pod(name, job.name, job.profile, stage.work_class, now, **of_stage, job_work=work)
            yield StageTaskRun(task, stage.work_class, job.number, size, now, stage=at)


class Jobs:
    """The jobs of one run, assigned to its scheduler profiles in turn."""

    def __init__(self, profiles: Sequence[str], staged: StagedJobs) -> None:
        self.any_in_parts = False  # whether any job so far does not submit all tasks at once
        self._profiles = tuple(profiles)
        self._staged = staged
        # By job number: tasks not submitted yet.
        self._later: dict[int, tuple[Arrival, Iterator[tuple[int, float]]]] = {}

    def arrive(self, number: int, job: Arrival, measured: bool, now: float) -> Sequence[TaskRun]:
        """A job arrives, measured or not; returns the tasks to submit now."""
        tasks = enumerate(job.sizes)
        if job.parallelism is None and job.dag is None:
            return self._new(number, job, tasks, now)
        self.any_in_parts = True
        if job.dag is not None:
            profile = self._profiles[number % len(self._profiles)]
            return self._staged.arrive(number, job, job.dag, now, profile=profile, measured=measured)
        self._later[number] = job, tasks
        return self._new(number, job, islice(tasks, job.parallelism), now)

    def end(self, run: TaskRun, now: float) -> Sequence[TaskRun]:
        """The task has ended; returns the tasks to submit now."""
        if isinstance(run, StageTaskRun):
            return self._staged.end(run, now)
        if run.job not in self._later:
            return []
        job, tasks = self._later[run.job]
        more = self._new(run.job, job, islice(tasks, 1), now)
        if not more:
            del self._later[run.job]
        return more

    def lose(self, run: TaskRun, now: float) -> None:
        """The task was lost, evicted or with its machine: a Job's controller makes a new pod."""
        run.restarts += 1
        name = f"job-{run.job}-{run.task.name.split('-')[2]}-{run.restarts}"
        work = self._staged.lose(run, now) if isinstance(run, StageTaskRun) else None
        run.task = replace(run.task, uid=name, name=name, created=now, job_work=work)

    def _new(
        self, number: int, job: Arrival, tasks: Iterable[tuple[int, float]], now: float
    ) -> list[TaskRun]:
        work_class, owner, new = job.work_class, f"job-{number}", []
        profile = self._profiles[number % len(self._profiles)]
        gang = gang_key(number, work_class)
        for at, size in tasks:
            task = _pod(f"{owner}-{at}", owner, profile, work_class, now, estimate=job.estimate, gang=gang)
            new.append(TaskRun(task, work_class, number, size, now))
        return new


def _pod(name: str, job: str, profile: str, work_class: WorkClass, now: float, **more: Any) -> Task:
    """A new pod of a job; `more`: its estimate, and what is known of its stage."""
    return Task(
        uid=name,
        namespace=work_class.namespace,
        name=name,
        profile=profile,
        spec=work_class.spec,
        priority=work_class.priority,
        created=now,
        workload=work_class.name,
        job=job,
        asked_pool=work_class.pool,
        speculative=work_class.speculative,
        restartable=work_class.restartable,
        **more,
    )


def as_running(run: TaskRun, node: str, now: float) -> Task:
    """The pod as a watch shows it when its container has started."""
    return replace(run.task, node=node, phase="Running", started=now, grant=run.grant)


def as_finished(run: TaskRun, node: str, phase: Phase, now: float) -> Task:
    """The pod as a watch shows it when it has ended."""
    return replace(run.task, node=node, phase=phase, started=run.started, finished=now)
