"""Jobs with stages: their responses and how fairly they shared, and each job beside a baseline's run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean

import numpy as np

from eclectus.maths.student import half_width
from eclectus.sim.base.results import (
    DagComparison,
    DagResult,
    DagSummary,
    Interval,
    ProfileSummary,
    RunResult,
)
from eclectus.sim.report.group_tables import Table, format_interval, optional_cell, unit_for

LOSER = 0.8  # a job with a smaller factor has lost, as Carbyne's evaluation counts it (OSDI 2016, section 7)


def compare_jobs(mine: DagResult, baseline: DagResult) -> DagComparison | None:
    """The jobs that have ended in both runs, which have the same seed; None if there is none."""
    theirs = {job.number: job for job in baseline.jobs}
    pairs = [(job, theirs[job.number]) for job in mine.jobs if job.number in theirs]
    if not pairs:
        return None
    factors = np.array([other.response / one.response for one, other in pairs])
    p25, p50, p75, p95 = (float(each) for each in np.quantile(factors, (0.25, 0.5, 0.75, 0.95)))
    ends = [max(job.arrived + job.response for job in side) for side in zip(*pairs, strict=True)]
    return DagComparison(
        factor=fmean(other.response for _, other in pairs) / fmean(one.response for one, _ in pairs),
        p25=p25,
        p50=p50,
        p75=p75,
        p95=p95,
        worst=float(factors.min()),
        losers=float((factors < LOSER).mean()),
        makespan=ends[0] / ends[1],
    )


def summarise_dags(runs: Sequence[RunResult], baseline: Sequence[RunResult]) -> DagSummary | None:
    """Means over the runs of a profile that have jobs with stages, beside the baseline's of equal seeds."""
    some = [(run, run.dags) for run in runs if run.dags is not None and run.dags.jobs]
    if not some:
        return None
    theirs = {run.seed: run.dags for run in baseline}
    compared = []
    for run, dags in some:
        other = theirs.get(run.seed)
        found = None if other is None else compare_jobs(dags, other)
        if found is not None:
            compared.append(found)
    results = [dags for _, dags in some]
    responses = [[job.response for job in dags.jobs] for dags in results]
    fairness = [dags.fairness for dags in results if dags.fairness is not None]

    def against(read: Callable[[DagComparison], float]) -> Interval | None:
        return _interval([read(each) for each in compared]) if compared else None

    return DagSummary(
        mean=_interval([fmean(each) for each in responses]),
        p50=_interval([float(np.quantile(each, 0.5)) for each in responses]),
        p95=_interval([float(np.quantile(each, 0.95)) for each in responses]),
        end=_interval([max(job.arrived + job.response for job in dags.jobs) for dags in results]),
        fairness=_interval(fairness) if fairness else None,
        unfairness=_interval([fmean(job.unfairness for job in dags.jobs) for dags in results]),
        unfairness_p95=_interval(
            [float(np.quantile([job.unfairness for job in dags.jobs], 0.95)) for dags in results]
        ),
        below_share=_interval([dags.below_share for dags in results]),
        above_share=_interval([dags.above_share for dags in results]),
        lost=_interval([dags.lost for dags in results]),
        slips=_interval([dags.slips for dags in results]),
        slip_seconds=_interval([dags.slip_seconds for dags in results]),
        factor=against(lambda each: each.factor),
        factor_p50=against(lambda each: each.p50),
        losers=against(lambda each: each.losers),
    )


def dag_tables(summaries: Sequence[ProfileSummary]) -> Iterator[Table]:
    """Responses and fairness of jobs with stages, if all profiles have any."""
    found = [(each.profile, each.dags) for each in summaries if each.dags is not None]
    if not found or len(found) != len(summaries):
        return
    scale, unit = unit_for(min(dags.mean.mean for _, dags in found))
    times = (f"jobs with stages, {unit}", "mean", "median", "p95", "last end")
    compared = ("factor", "factor p50", "below 0.8, %") if len(found) > 1 else ()
    rows = []
    for at, (profile, dags) in enumerate(found):
        cells = [format_interval(each, scale=scale) for each in (dags.mean, dags.p50, dags.p95, dags.end)]
        if compared and at:
            cells += [optional_cell(dags.factor), optional_cell(dags.factor_p50)]
            cells.append(optional_cell(dags.losers, scale=0.01))
        elif compared:
            cells += ["1", "1", "0"]  # the baseline
        rows.append([profile, *cells])
    yield Table([*times, *compared], rows)
    heads = [
        "sharing among jobs",
        "Jain",
        "x alone",
        "p95",
        "below 1/N",
        "above 1/N",
        "lost",
        "slips",
        "slipped, s",
    ]
    sharing = [
        [
            profile,
            optional_cell(dags.fairness),
            *map(
                format_interval,
                (
                    dags.unfairness,
                    dags.unfairness_p95,
                    dags.below_share,
                    dags.above_share,
                    dags.lost,
                    dags.slips,
                    dags.slip_seconds,
                ),
            ),
        ]
        for profile, dags in found
    ]
    yield Table(heads, sharing)


def _interval(values: Sequence[float]) -> Interval:
    return Interval(fmean(values), half_width(values))
