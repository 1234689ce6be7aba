"""Results of jobs that are graphs of stages, as part of the results of a run."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

NonNegative = Annotated[float, Meta(ge=0)]


class DagJob(Struct, frozen=True, array_like=True):
    """One measured job that has ended. Jobs with the same number are the same in all runs with one seed."""

    number: int
    name: str
    tasks: int
    arrived: float  # seconds
    response: NonNegative  # arrival to the end of its last stage, seconds
    alone: NonNegative  # what it would take on 1/N of the cluster; N: mean number of jobs while it was there

    @property
    def unfairness(self) -> float:
        """Response over the time that it would take alone: finish-time fairness, as in Themis (NSDI 2020)."""
        return self.response / self.alone if self.alone else 1.0


class DagResult(Struct, frozen=True):
    """The jobs with stages of one run.

    A share is the largest share of a resource of the whole cluster that a job's tasks hold. A job is
    entitled to 1/N of the cluster, N being the number of jobs at that moment. One share-second is the whole
    cluster for a second.
    """

    jobs: list[DagJob]  # in the order of their ends
    fairness: float | None  # Jain's index of received over entitled share, mean over windows; null: no window
    fairness_least: float | None  # of all windows
    windows: int  # of 60 s in which at least two jobs had tasks waiting all the time
    below_share: NonNegative  # share-seconds below what waiting jobs were entitled to
    above_share: NonNegative  # share-seconds above what jobs were entitled to
    lost: int  # attempts of tasks that failed, or were lost with their machine
    slips: int  # how often deadlines of plans were moved to a later time
    slip_seconds: NonNegative  # by how much in all, over jobs


class DagComparison(Struct, frozen=True):
    """The jobs with stages of one run beside the same jobs in another run with the same seed.

    The factor of a job is its response in the other run over its response here: above 1 it is faster here.
    """

    factor: NonNegative  # ratio of the mean responses
    p25: NonNegative  # of the factors of jobs
    p50: NonNegative
    p75: NonNegative
    p95: NonNegative
    worst: NonNegative
    losers: NonNegative  # share of the jobs with a factor below 0.8
    makespan: NonNegative  # end of the last job here over that there
