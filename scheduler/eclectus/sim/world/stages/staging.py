"""Jobs that are graphs of stages: which pods are submitted when, as an operator of such jobs would do it.

The pods of a stage are submitted together, when all tasks of its parents have ended, and carry the job's
critical path and remaining work as estimated. A lost task is submitted again, and the children of its stage
wait for it. The scheduler gets the job itself, when it arrives and whenever a stage or an attempt has ended,
if its policies want to know jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eclectus.model.commands import RecordPlan
from eclectus.model.events import Event, JobGone, JobSeen
from eclectus.model.objects import Task
from eclectus.sim.base.machine import TaskRun
from eclectus.sim.base.work import Arrival, Dag
from eclectus.sim.world.stages.history import History
from eclectus.sim.world.stages.record import DagRecord
from eclectus.sim.world.stages.staged_job import NAMESPACE, StagedJob


class StageTaskRun(TaskRun, kw_only=True):
    """A task of a stage."""

    stage: int


class StagedJobs:
    """All jobs with stages that have arrived and not ended."""

    def __init__(
        self, record: DagRecord, history: History | None, notify: Callable[[Event], None] | None
    ) -> None:
        """`history`: where estimates come from, if not from arrivals; `notify`: who wants to know jobs."""
        self.record, self._history, self._notify = record, history, notify
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
            self._finish(job, now)
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

    def _finish(self, job: StagedJob, now: float) -> None:
        del self._jobs[job.number]
        self.record.finish(job.number, now)
        if self._notify is not None:
            self._notify(JobGone(job.name))

    def _release(self, job: StagedJob, at: int, now: float) -> Iterator[StageTaskRun]:
        stage, work = job.dag.stages[at], job.work
        self.record.submit(job.number, len(job.sizes[at]), now)
        for index, size in enumerate(job.sizes[at]):
            name = f"{job.name}-{at}.{index}"
            task = Task(
                uid=name,
                namespace=NAMESPACE,
                name=name,
                profile=job.profile,
                spec=stage.work_class.spec,
                priority=stage.work_class.priority,
                created=now,
                workload=stage.work_class.name,
                job=job.name,
                stage=stage.name,
                estimate=job.estimates[at],
                path=job.paths[at],
                job_work=work,
            )
            yield StageTaskRun(task, stage.work_class, job.number, size, now, stage=at)
