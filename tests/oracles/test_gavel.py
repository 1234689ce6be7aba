"""Training jobs on unrelated GPUs against the published simulations of Gavel (OSDI 2020).

The published figure is the mean completion time of `fifo_perf`: in arrival order each job gets the free GPU
that is fastest for it, and all jobs are assigned anew every 360 s, so that running jobs move at no cost.
Eclectus never moves a job. It may wait instead for the GPU to which the job would have been moved: that is
the default policy, with true rates and without a limit of waits.
"""

from __future__ import annotations

import csv
import gzip
import json
from functools import cache
from itertools import islice, pairwise
from statistics import fmean
from typing import Any

import pytest

from eclectus.sim.base.machine import Machine
from eclectus.sim.base.work import Arrival
from eclectus.sim.scenario import Scenario
from eclectus.sim.workloads.gavel import JOB_TYPES, MEAN_SECONDS
from published_data import published
from short_scenarios import near, place, runs, scenario

GPUS = ("v100", "p100", "k80")
# Jobs run for hours and their true rates are known, so waits of more than five minutes are right.
DEFAULT = [{**profile, "waitLimit": None} for profile in place("rosella", learn="truth")]
HOUR = 3600.0


def training(jobs_per_hour: float, profiles: list[dict[str, Any]] = DEFAULT, **window: int) -> Scenario:
    table = str(published("gavel/simulation_throughputs.json.gz"))
    groups = [{"name": gpu, "count": 36, "labels": {"gpu-type": gpu}} for gpu in GPUS]
    return scenario(
        cluster={"groups": groups},
        workload={"gavel": {"throughputs": table, "jobsPerHour": jobs_per_hour, **window}},
        profiles=profiles,
        measure=None,
    )


@pytest.fixture(scope="module")
def known() -> Any:
    return json.loads(published("gavel/zero_load.json").read_bytes())


def best_seconds(job: Arrival, machines: dict[str, Machine]) -> float:
    """Duration of the job on its fastest GPU."""
    return job.sizes[0] / max(machines[f"{gpu}-0"].nominal_speed(job.work_class.name) for gpu in GPUS)


def test_types_of_jobs_stand_in_the_order_of_the_published_generator(known: Any) -> None:
    assert list(JOB_TYPES) == known["job_table_order"]


@pytest.mark.parametrize("seed", [0, 1, 2, 15, 42, 1234])
def test_the_stream_is_the_published_one_to_the_second(seed: int, known: Any) -> None:
    asked, expected = training(1.0), known["per_seed"][str(seed)]
    machines = asked.cluster.machines()
    jobs = list(islice(asked.plan.arrivals(seed), 4000, 5000))
    first = expected["job_4000"]
    assert jobs[0].work_class.name == first["type"]
    assert jobs[0].sizes[0] == pytest.approx(first["v100_duration_s"], abs=1)
    assert jobs[0].at == pytest.approx(first["arrival_s_at_1_job_per_hour"], abs=1)
    assert fmean(job.sizes[0] for job in jobs) == pytest.approx(expected["mean_v100_duration_s"], abs=1)
    best = fmean(best_seconds(job, machines) for job in jobs)
    assert best == pytest.approx(expected["mean_best_type_s"], abs=1)


def test_at_no_load_the_mean_is_that_of_the_closed_form(known: Any) -> None:
    asked = training(1.0)
    machines = asked.cluster.machines()
    speeds = [[machines[f"{gpu}-0"].nominal_speed(job) for gpu in GPUS] for job in JOB_TYPES]
    hours = MEAN_SECONDS / HOUR
    expected = hours * fmean(1 / max(each) for each in speeds)
    assert hours == pytest.approx(known["expected_v100_duration_hours"], abs=1e-6)
    assert expected == pytest.approx(known["expected_best_type_hours"], abs=1e-6)
    jobs = islice(asked.plan.arrivals(7), 200_000)  # with a standard error of half a per cent
    assert near("Gavel's stream, best-type hours", [_mean_best(jobs, machines)], expected, within=0.015)


def _mean_best(jobs: Any, machines: dict[str, Machine]) -> float:
    return fmean(best_seconds(job, machines) for job in jobs) / HOUR


def test_a_job_alone_runs_on_the_gpu_that_is_fastest_for_it() -> None:
    profiles = place("rosella", learn="truth", replan=False, compare="sed")
    asked = training(0.05, profiles, firstJob=0, lastJob=399)
    (run,) = runs(asked, [0])
    jobs = islice(asked.plan.arrivals(0), 400)
    assert run.response.mean / HOUR == pytest.approx(_mean_best(jobs, asked.cluster.machines()), rel=1e-9)


# -- mean completion times -----------------------------------------------------------------------

RATES = [0.4, 0.8, 1.2, 1.6, 2.0, 2.4, 2.8, 3.2, 3.6, 4.0]


@cache
def completion_hours(jobs_per_hour: float) -> tuple[float, ...]:
    """Mean of jobs 4000 to 4999, for seeds 0, 1 and 2."""
    done = runs(training(jobs_per_hour), [0, 1, 2])
    assert [run.response.count for run in done] == [1000] * 3
    return tuple(run.response.mean / HOUR for run in done)


@pytest.mark.slow
@pytest.mark.parametrize("rate", RATES)
def test_mean_completion_times_are_those_published(rate: float) -> None:
    with gzip.open(published("gavel/published_jct_by_rate.csv.gz"), "rt") as file:
        curve = {float(row["jobs_per_hour"]): float(row["value"]) for row in csv.DictReader(file)}
    assert sorted(curve) == RATES
    what = f"Gavel, fifo_perf, {rate} jobs/h: mean completion, h"
    assert near(what, completion_hours(rate), curve[rate], within=0.1)


@pytest.mark.slow
def test_mean_completion_times_never_fall_as_the_rate_grows() -> None:
    for less, more in pairwise(fmean(completion_hours(rate)) for rate in RATES):
        assert more > less * (1 - 1e-9)
