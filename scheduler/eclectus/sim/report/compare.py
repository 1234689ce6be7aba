"""Summaries of the runs of each profile: means and 95 % intervals over seeds.

Jobs with stages are also compared job by job with the first profile's runs of equal seeds.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from eclectus.maths.student import half_width
from eclectus.sim.base import results


def summarise(runs: Sequence[results.RunResult]) -> list[results.ProfileSummary]:
    """Each profile over its runs that count."""
    counted = results.counted_runs(runs)
    baseline = next(iter(counted.values()), [])
    return [_summary(name, group, baseline) for name, group in counted.items()]


def _summary(
    profile: str, runs: Sequence[results.RunResult], baseline: Sequence[results.RunResult]
) -> results.ProfileSummary:
    groups: dict[str, dict[str, list[results.GroupResult]]] = {}
    shares, evictions = [each.probe_share for each in runs], [each.evictions for each in runs]
    for each in runs:
        for name, some in each.groups.items():
            for label, group in some.items():
                groups.setdefault(name, {}).setdefault(label, []).append(group)
    statistics = {
        name: {label: _statistics(some[label]) for label in results.sorted_groups(some)}
        for name, some in groups.items()
    }
    return results.ProfileSummary(
        profile=profile,
        runs=len(runs),
        all=_statistics(runs),
        groups=statistics,
        worst={name: worst for name, some in statistics.items() if (worst := _worst(some)) is not None},
        dropped=_interval([each.dropped for each in runs]),
        allocation=_allocation(runs),
        in_system_mean=_interval([each.in_system_mean for each in runs]),
        utilisation=_interval([each.utilisation for each in runs]),
        probe_share=_optional_interval(shares if any(shares) else ()),
        evictions=_optional_interval(evictions if any(evictions) else ()),
        dags=summarise_dags(runs, baseline),
        locality=_optional_interval([each.locality for each in runs if each.locality is not None]),
        across_gigabytes=_optional_interval(
            [each.across_gigabytes for each in runs if each.across_gigabytes is not None]
        ),
        pools=_summarise_pools([each.pools for each in runs if each.pools is not None]),
    )


def _statistics(parts: Sequence[results.RunResult] | Sequence[results.GroupResult]) -> results.Statistics:
    """Statistics over the runs that have any such task or job."""
    return results.Statistics(
        response=_time_statistics([each.response for each in parts]),
        wait=_time_statistics([each.wait for each in parts]),
        jobs=_time_statistics([each.jobs for each in parts]),
        slowdown=_optional_interval([each.slowdown for each in parts if each.response.count]),
        met=_optional_interval([each.met for each in parts if each.met is not None]),
    )


def _worst(groups: Mapping[str, results.Statistics]) -> results.WorstGroup | None:
    """The group whose mean slowdown is largest; None unless tasks of several groups have ended."""
    found = [
        results.WorstGroup(label, each.slowdown)
        for label, each in groups.items()
        if each.slowdown is not None
    ]
    return max(found, key=lambda group: group.slowdown.mean) if len(found) > 1 else None


def _time_statistics(samples: Sequence[results.Times]) -> results.TimeStatistics | None:
    some = [each for each in samples if each.count]
    if not some:
        return None
    return results.TimeStatistics(
        mean=_interval([each.mean for each in some]),
        p50=_interval([each.p50 for each in some]),
        p90=_interval([each.p90 for each in some]),
        p99=_interval([each.p99 for each in some]),
    )


def _allocation(runs: Sequence[results.RunResult]) -> dict[int, results.Interval]:
    """At every whole per cent that all runs reached; a run without that per cent keeps its last value."""
    curves = [each.allocation for each in runs]
    if not all(curves):
        return {}
    first, last = max(min(curve) for curve in curves), min(max(curve) for curve in curves)
    return {
        x: _interval([curve[max(known for known in curve if known <= x)] for curve in curves])
        for x in range(first, last + 1)
    }


def _interval(values: Sequence[float]) -> results.Interval:
    return results.Interval(fmean(values), half_width(values))


def _optional_interval(values: Sequence[float]) -> results.Interval | None:
    return _interval(values) if values else None


def _summarise_pools(runs: Sequence[results.PoolsResult]) -> results.PoolsSummary | None:
    if not runs:
        return None
    paths = sorted({path for each in runs for path in each.pools})
    fairness = [each.fairness for each in runs if each.fairness is not None]
    least = [each.fairness_least for each in runs if each.fairness_least is not None]
    return results.PoolsSummary(
        pools={path: _pool([each.pools[path] for each in runs if path in each.pools]) for path in paths},
        fairness=_optional_interval(fairness),
        fairness_least=_optional_interval(least),
    )


def _pool(runs: Sequence[results.PoolResult]) -> results.PoolSummary:
    first_waits = [
        each.first_start - each.first_arrival
        for each in runs
        if each.first_start is not None and each.first_arrival is not None
    ]
    return results.PoolSummary(
        share=_interval([each.share for each in runs]),
        held=_interval([each.held for each in runs]),
        off=_interval([each.off for each in runs]),
        wait=_time_statistics([each.wait for each in runs]),
        first_wait=_optional_interval(first_waits),
    )


LOSER = 0.8  # a job with a smaller factor has lost, as Carbyne's evaluation counts it (OSDI 2016, section 7)


def compare_jobs(mine: results.DagResult, baseline: results.DagResult) -> results.DagComparison | None:
    """The jobs that have ended in both runs, which have the same seed; None if there is none."""
    theirs = {job.number: job for job in baseline.jobs}
    pairs = [(job, theirs[job.number]) for job in mine.jobs if job.number in theirs]
    if not pairs:
        return None
    factors = np.array([other.response / one.response for one, other in pairs])
    ends = [max(job.arrived + job.response for job in side) for side in zip(*pairs, strict=True)]
    p25, p50, p75, p95 = np.quantile(factors, (0.25, 0.5, 0.75, 0.95)).tolist()
    factor = fmean(other.response for _, other in pairs) / fmean(one.response for one, _ in pairs)
    worst, losers = float(factors.min()), float((factors < LOSER).mean())
    return results.DagComparison(factor, p25, p50, p75, p95, worst, losers, makespan=ends[0] / ends[1])


def summarise_dags(
    runs: Sequence[results.RunResult], baseline: Sequence[results.RunResult]
) -> results.DagSummary | None:
    """Means over the runs of a profile that have jobs with stages, beside the baseline's of equal seeds."""
    some = [(run, run.dags) for run in runs if run.dags is not None and run.dags.jobs]
    if not some:
        return None
    theirs = {run.seed: run.dags for run in baseline if run.dags is not None}
    found = (compare_jobs(dags, theirs[run.seed]) for run, dags in some if run.seed in theirs)
    compared = [each for each in found if each is not None]
    own = [dags for _, dags in some]
    responses = [[job.response for job in dags.jobs] for dags in own]
    unfairness = [[job.unfairness for job in dags.jobs] for dags in own]
    return results.DagSummary(
        mean=_interval([fmean(each) for each in responses]),
        p50=_interval([float(np.quantile(each, 0.5)) for each in responses]),
        p95=_interval([float(np.quantile(each, 0.95)) for each in responses]),
        end=_interval([max(job.arrived + job.response for job in dags.jobs) for dags in own]),
        fairness=_optional_interval([dags.fairness for dags in own if dags.fairness is not None]),
        unfairness=_interval([fmean(each) for each in unfairness]),
        unfairness_p95=_interval([float(np.quantile(each, 0.95)) for each in unfairness]),
        below_share=_interval([dags.below_share for dags in own]),
        above_share=_interval([dags.above_share for dags in own]),
        lost=_interval([dags.lost for dags in own]),
        slips=_interval([dags.slips for dags in own]),
        slip_seconds=_interval([dags.slip_seconds for dags in own]),
        factor=_optional_interval([each.factor for each in compared]),
        factor_p50=_optional_interval([each.p50 for each in compared]),
        losers=_optional_interval([each.losers for each in compared]),
    )
