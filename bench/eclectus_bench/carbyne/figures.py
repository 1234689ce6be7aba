"""Figures of each contestant beside the baseline's runs of the same seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from eclectus.maths.student import half_width
from eclectus.sim.base.results import DagComparison, DagResult, Interval, RunResult
from eclectus.sim.report.compare import compare_jobs
from eclectus_bench.carbyne.contestants import BASELINE
from eclectus_bench.carbyne.runs import Runs


@dataclass(frozen=True)
class Row:
    """One contestant in one case; figures by the names of `OWN` and `BESIDE`."""

    case: str
    contestant: str
    figures: dict[str, Interval | None]


def _quantile(share: float) -> Callable[[DagResult], float]:
    return lambda dags: float(np.quantile([job.response for job in dags.jobs], share))


OWN: dict[str, Callable[[DagResult], float | None]] = {
    "mean, s": lambda dags: fmean(job.response for job in dags.jobs),
    "p50, s": _quantile(0.5),
    "p95, s": _quantile(0.95),
    "Jain": lambda dags: dags.fairness,
    "x alone": lambda dags: fmean(job.unfairness for job in dags.jobs),
    "slips": lambda dags: dags.slips,
}
BESIDE: dict[str, Callable[[DagComparison], float]] = {
    "factor": lambda found: found.factor,
    "p50": lambda found: found.p50,
    "p95": lambda found: found.p95,
    "below 0.8, %": lambda found: 100 * found.losers,
    "worst": lambda found: found.worst,
    "makespan": lambda found: found.makespan,
}


def rows_of(runs: Runs) -> Iterator[Row]:
    """A row for each contestant of each case; the baseline is the first of them."""
    for case, by_contestant in runs.items():
        baseline = by_contestant[BASELINE]
        for name, mine in by_contestant.items():
            own = {what: _interval([read(dags(run)) for run in mine]) for what, read in OWN.items()}
            beside = {
                what: _beside(read, mine, baseline) if mine is not baseline else None
                for what, read in BESIDE.items()
            }
            yield Row(case, name, own | beside)


def dags(run: RunResult) -> DagResult:
    """The jobs with stages of a run that has some."""
    if run.dags is None or not run.dags.jobs:
        raise ValueError(f"{run.profile}, seed {run.seed}: no job with stages has ended")
    return run.dags


def _beside(
    read: Callable[[DagComparison], float], mine: Sequence[RunResult], baseline: Sequence[RunResult]
) -> Interval | None:
    found = (compare_jobs(dags(one), dags(other)) for one, other in zip(mine, baseline, strict=True))
    return _interval([None if each is None else read(each) for each in found])


def _interval(values: Sequence[float | None]) -> Interval | None:
    known = [value for value in values if value is not None]
    return Interval(fmean(known), half_width(known)) if len(known) == len(values) else None
