"""Jobs that are graphs of stages: which pods are submitted when, as an operator of such jobs would do it.

The pods of a stage are submitted together, when all tasks of its parents have ended, and carry the job's
critical path and remaining work. A lost task is submitted again, and the children of its stage wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from eclectus.model.objects import Task
from eclectus.sim.base.machine import TaskRun
from eclectus.sim.base.work import Dag


class StageTaskRun(TaskRun, kw_only=True):
    """A task of a stage."""

    stage: int


class _Job:
    """The progress of one job; lists are by stage."""

    def __init__(self, dag: Dag, sizes: Iterable[float], profile: str) -> None:
        self.dag, self.profile = dag, profile
        left = iter(sizes)
        self.sizes = [tuple(islice(left, stage.tasks)) for stage in dag.stages]
        self.unstarted = [stage.tasks for stage in dag.stages]
        self.unfinished = [stage.tasks for stage in dag.stages]
        self.unfinished_parents = [len(stage.parents) for stage in dag.stages]

    @property
    def work(self) -> float:
        """Estimated work of all tasks that have not started, in seconds."""
        return sum(
            tasks * stage.seconds for tasks, stage in zip(self.unstarted, self.dag.stages, strict=True)
        )


class StagedJobs:
    """All jobs with stages that have arrived and not ended."""

    def __init__(self) -> None:
        self._jobs: dict[int, _Job] = {}

    def arrive(
        self, number: int, dag: Dag, sizes: Iterable[float], profile: str, now: float
    ) -> list[StageTaskRun]:
        """A job arrives, with the true sizes of its tasks; returns the tasks to submit now."""
        job = self._jobs[number] = _Job(dag, sizes, profile)
        roots = [at for at, count in enumerate(job.unfinished_parents) if not count]
        return [run for at in roots for run in self._release(number, job, at, now)]

    def start(self, run: StageTaskRun) -> None:
        """The task has started."""
        self._jobs[run.job].unstarted[run.stage] -= 1

    def lose(self, run: StageTaskRun) -> float:
        """A started task was lost and must start again; returns its job's unstarted work, in seconds."""
        job = self._jobs[run.job]
        job.unstarted[run.stage] += 1
        return job.work

    def end(self, run: StageTaskRun, now: float) -> list[StageTaskRun]:
        """The task has ended; returns the tasks to submit now."""
        job = self._jobs[run.job]
        job.unfinished[run.stage] -= 1
        if job.unfinished[run.stage]:
            return []
        ready = []
        for child in job.dag.stages[run.stage].children:
            job.unfinished_parents[child] -= 1
            if not job.unfinished_parents[child]:
                ready.append(child)
        if not any(job.unfinished):
            del self._jobs[run.job]
        return [each for at in ready for each in self._release(run.job, job, at, now)]

    def _release(self, number: int, job: _Job, at: int, now: float) -> Iterator[StageTaskRun]:
        stage, owner, work = job.dag.stages[at], f"job-{number}", job.work
        for index, size in enumerate(job.sizes[at]):
            name = f"{owner}-{at}.{index}"
            task = Task(
                uid=name,
                namespace="default",
                name=name,
                profile=job.profile,
                spec=stage.work_class.spec,
                priority=stage.work_class.priority,
                created=now,
                workload=stage.work_class.name,
                job=owner,
                estimate=stage.seconds,
                path=stage.path,
                job_work=work,
            )
            yield StageTaskRun(task, stage.work_class, number, size, now, stage=at)
