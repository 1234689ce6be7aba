"""Jobs that have arrived: which of their pods are submitted when, and how a watch shows those later.

Most jobs submit all tasks at once. Of some only so many are there at a time, as a Job's parallelism says;
those with stages are staged by staging.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from eclectus.model.objects import Phase, Task
from eclectus.sim.base.machine import Running
from eclectus.sim.base.work import Arrival
from eclectus.sim.world.staging import Staged, Staging


class Jobs:
    """Those of one run. Its profiles take turns, job by job."""

    def __init__(self, profiles: Sequence[str]) -> None:
        self.in_parts = False  # whether any job has come that does not submit all its tasks at once
        self._profiles, self._staging = tuple(profiles), Staging()
        self._later: dict[int, tuple[Arrival, Iterator[tuple[int, float]]]] = {}  # tasks not submitted yet

    def arrive(self, number: int, job: Arrival, now: float) -> Sequence[Running]:
        """The job is there; returns what is submitted at once."""
        tasks = enumerate(job.sizes)
        if job.at_once is None and job.dag is None:
            return self._new(number, job, tasks, now)
        self.in_parts = True
        if job.dag is not None:
            profile = self._profiles[number % len(self._profiles)]
            return self._staging.arrive(number, job.dag, job.sizes, profile, now)
        self._later[number] = job, tasks
        return self._new(number, job, islice(tasks, job.at_once), now)

    def begin(self, run: Running) -> None:
        """The task has a node."""
        if isinstance(run, Staged):
            self._staging.begin(run)

    def end(self, run: Running, now: float) -> Sequence[Running]:
        """The task has ended; returns what is submitted now that it has."""
        if isinstance(run, Staged):
            return self._staging.end(run, now)
        if run.job not in self._later:
            return []
        job, tasks = self._later[run.job]
        more = self._new(run.job, job, islice(tasks, 1), now)
        if not more:
            del self._later[run.job]
        return more

    def lose(self, run: Running, now: float) -> None:
        """The task was lost with its machine: another pod takes its place, as a Job would see to."""
        run.tries += 1
        name = f"job-{run.job}-{run.task.name.split('-')[2]}-{run.tries}"
        work = self._staging.lose(run) if isinstance(run, Staged) else None
        run.task = replace(run.task, uid=name, name=name, created=now, job_work=work)

    def _new(
        self, number: int, job: Arrival, tasks: Iterable[tuple[int, float]], now: float
    ) -> list[Running]:
        kind, owner, new = job.kind, f"job-{number}", []
        profile = self._profiles[number % len(self._profiles)]
        for at, size in tasks:
            name = f"{owner}-{at}"
            task = Task(
                uid=name,
                namespace="default",
                name=name,
                profile=profile,
                spec=kind.spec,
                priority=kind.priority,
                created=now,
                workload=kind.name,
                job=owner,
                estimate=job.estimate,
            )
            new.append(Running(task, kind, number, size, now))
        return new


def seen_running(run: Running, node: str, now: float) -> Task:
    """The pod as a watch shows it once its container runs."""
    return replace(run.task, node=node, phase="Running", started=now, devices=run.devices)


def seen_over(run: Running, node: str, phase: Phase, now: float) -> Task:
    """The pod as a watch shows it when it is over."""
    return replace(run.task, node=node, phase=phase, started=run.started, finished=now)
