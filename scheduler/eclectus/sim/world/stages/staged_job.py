"""The progress of one job with stages, what is estimated of it, and how a watch shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec.structs import replace

from eclectus.model.job import Job, JobPlan, JobStage
from eclectus.sim.base.work import Dag

NAMESPACE = "default"  # of all jobs and their pods


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
        self.number, self.name, self.dag, self.profile, self.arrived = (
            number,
            f"job-{number}",
            dag,
            profile,
            now,
        )
        left = iter(sizes)
        self.sizes = [tuple(islice(left, stage.tasks)) for stage in dag.stages]
        self.estimates = tuple(stage.seconds for stage in dag.stages) if estimates is None else estimates
        self.paths = _paths(dag, self.estimates)
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
        ready = []
        for child in self.dag.stages[at].children:
            self.unfinished_parents[child] -= 1
            if not self.unfinished_parents[child]:
                ready.append(child)
        return ready

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
        job = Job(self.name, NAMESPACE, self.name, stages, self.arrived)
        if self.plan is None:
            return job
        written = self.plan
        return replace(job, deadline=written.deadline, slips=written.slips, slip_seconds=written.slip_seconds)


def _paths(dag: Dag, estimates: Sequence[float | None]) -> tuple[float | None, ...]:
    """Estimated critical path from the start of each stage to the end of the job; None if some is unknown."""
    paths: list[float | None] = [None] * len(dag.stages)
    for at in reversed(range(len(dag.stages))):
        own, below = estimates[at], [paths[child] for child in dag.stages[at].children]
        known = [each for each in below if each is not None]
        if own is not None and len(known) == len(below):
            paths[at] = own + max(known, default=0.0)
    return tuple(paths)
