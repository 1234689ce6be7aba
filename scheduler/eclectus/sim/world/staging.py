"""Jobs whose stages wait for one another: which pods are submitted when, as an operator of DAGs would do it.

Pods of a stage are submitted together when all tasks of its parents have ended, with what is known of their
job written on them. A lost task is submitted again, and the children of its stage wait for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from eclectus.model.objects import Task
from eclectus.sim.base.machine import Running
from eclectus.sim.base.work import Dag


class Staged(Running, kw_only=True):
    """A task of a stage."""

    stage: int


class _Job:
    """How far one job has come; lists by stage."""

    def __init__(self, dag: Dag, sizes: Iterable[float], profile: str) -> None:
        self.dag, self.profile = dag, profile
        left = iter(sizes)
        self.sizes = [tuple(islice(left, stage.tasks)) for stage in dag.stages]
        self.unbegun = [stage.tasks for stage in dag.stages]
        self.unended = [stage.tasks for stage in dag.stages]
        self.awaits = [len(stage.parents) for stage in dag.stages]

    @property
    def work(self) -> float:
        """What has not begun, as its submitter believes, seconds."""
        return sum(tasks * stage.seconds for tasks, stage in zip(self.unbegun, self.dag.stages, strict=True))


class Staging:
    """All jobs with stages that have arrived and not ended."""

    def __init__(self) -> None:
        self._jobs: dict[int, _Job] = {}

    def arrive(self, number: int, dag: Dag, sizes: Iterable[float], profile: str, now: float) -> list[Staged]:
        """The job is there, with the true sizes of its tasks; returns what is submitted at once."""
        job = self._jobs[number] = _Job(dag, sizes, profile)
        roots = [at for at, awaited in enumerate(job.awaits) if not awaited]
        return [run for at in roots for run in self._release(number, job, at, now)]

    def begin(self, run: Staged) -> None:
        """The task has a node."""
        self._jobs[run.job].unbegun[run.stage] -= 1

    def lose(self, run: Staged) -> float:
        """The task, begun before, must begin again; returns its job's work that has not begun, seconds."""
        job = self._jobs[run.job]
        job.unbegun[run.stage] += 1
        return job.work

    def end(self, run: Staged, now: float) -> list[Staged]:
        """The task has ended; returns what is submitted now that it has."""
        job = self._jobs[run.job]
        job.unended[run.stage] -= 1
        if job.unended[run.stage]:
            return []
        ready = []
        for child in job.dag.stages[run.stage].children:
            job.awaits[child] -= 1
            if not job.awaits[child]:
                ready.append(child)
        if not any(job.unended):
            del self._jobs[run.job]
        return [each for at in ready for each in self._release(run.job, job, at, now)]

    def _release(self, number: int, job: _Job, at: int, now: float) -> Iterator[Staged]:
        stage, owner, work = job.dag.stages[at], f"job-{number}", job.work
        for index, size in enumerate(job.sizes[at]):
            name = f"{owner}-{at}.{index}"
            task = Task(
                uid=name,
                namespace="default",
                name=name,
                profile=job.profile,
                spec=stage.kind.spec,
                priority=stage.kind.priority,
                created=now,
                workload=stage.kind.name,
                job=owner,
                estimate=stage.seconds,
                path=stage.path,
                job_work=work,
            )
            yield Staged(task, stage.kind, number, size, now, stage=at)
