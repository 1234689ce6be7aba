"""Jobs that have arrived: when their pods are submitted, and how a watch shows the pods later.

Most jobs submit all tasks at once. A job with `parallelism` keeps only so many pods at a time, as a
Kubernetes Job does; jobs with stages are handled by `StagedJobs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from eclectus.model.objects import Phase, Task
from eclectus.sim.base.machine import TaskRun
from eclectus.sim.base.work import Arrival
from eclectus.sim.world.stages.staging import StagedJobs, StageTaskRun


class Jobs:
    """The jobs of one run, assigned to its scheduler profiles in turn."""

    def __init__(self, profiles: Sequence[str], staged: StagedJobs) -> None:
        self.any_in_parts = False  # whether any job so far does not submit all tasks at once
        self._profiles, self._staged = tuple(profiles), staged
        self._later: dict[
            int, tuple[Arrival, Iterator[tuple[int, float]]]
        ] = {}  # by job number: tasks not submitted yet

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

    def start(self, run: TaskRun, now: float) -> None:
        """The task has started."""
        if isinstance(run, StageTaskRun):
            self._staged.start(run, now)

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
        for at, size in tasks:
            name = f"{owner}-{at}"
            task = Task(
                uid=name,
                namespace="default",
                name=name,
                profile=profile,
                spec=work_class.spec,
                priority=work_class.priority,
                created=now,
                workload=work_class.name,
                job=owner,
                estimate=job.estimate,
            )
            new.append(TaskRun(task, work_class, number, size, now))
        return new


def as_running(run: TaskRun, node: str, now: float) -> Task:
    """The pod as a watch shows it when its container has started."""
    return replace(run.task, node=node, phase="Running", started=now, grant=run.grant)


def as_finished(run: TaskRun, node: str, phase: Phase, now: float) -> Task:
    """The pod as a watch shows it when it has ended."""
    return replace(run.task, node=node, phase=phase, started=run.started, finished=now)
