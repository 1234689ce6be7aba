"""Carbyne where nodes differ in speed: what it expects of run times, and what learned speeds gain."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from msgspec.structs import replace

from builders import ExactSpeeds, make_engine, make_node
from checked_worlds import run_checked
from dag_world import DagWorld, job, stage
from eclectus.policies.carbyne import Carbyne
from eclectus.policies.place.fit import BestFit
from short_scenarios import scenario
from staged_jobs import job as staged_job
from staged_jobs import written

SECONDS = 20.0  # of a task at mean speed
RATES = {"slow": 0.5 / SECONDS, "fast": 1.5 / SECONDS}  # as learned: tasks a second


def finish_seconds(**nodes: str) -> float | None:
    """Of the plan of a job of one task, which may run on the nodes with these labels."""
    each = [make_node(name, cpu=4, labels={"disk": name}) for name in RATES]
    world = DagWorld(make_engine(BestFit(), ExactSpeeds(RATES), order=Carbyne()), each)
    only = stage("s", 1, 1000, SECONDS)
    selector = tuple(sorted(nodes.items()))
    world.submit(job("j", replace(only, spec=replace(only.spec, node_selector=selector))))
    return world.plans["j"][0].finish_seconds


def test_an_estimate_is_the_run_time_at_mean_speed_whatever_the_length_of_tasks() -> None:
    assert finish_seconds() == pytest.approx(SECONDS)


def test_tasks_take_as_long_as_on_the_nodes_that_may_run_them() -> None:
    assert finish_seconds(disk="fast") == pytest.approx(SECONDS / 1.5)
    assert finish_seconds(disk="slow") == pytest.approx(SECONDS / 0.5)


SPEEDS = (0.25, 0.5, 1.0, 2.25)  # on average 1: estimates are those of speed 1
JOBS = [
    staged_job(f"j{at}", ("a", 6, 4.0, ""), ("b", 2, 6.0, "a"), ("c", 4, 2.0, "a"), ("d", 1, 3.0, "bc"))
    for at in range(2)
]


def mean_response(folder: Path, **roles: Any) -> float:
    read = scenario(
        workload={
            "dags": written(folder, *JOBS)
            | {"arrivals": "poisson", "load": 0.6, "jobs": 24, "classes": "stage"}
        },
        cluster={"groups": [{"name": f"g{at}", "slots": 4, "speed": one} for at, one in enumerate(SPEEDS)]},
        profiles=[{"schedulerName": "it", "order": {"policy": "carbyne"}, **roles}],
        measure={},
    )
    found = [run_checked(read, read.profiles[0], seed) for seed in (1, 2)]
    assert all(each.complete and each.faults == 0 for each in found)
    return fmean(each.jobs.mean for each in found)


def test_learned_speeds_shorten_the_time_of_jobs(tmp_path: Path) -> None:
    learned = mean_response(tmp_path, learn={"policy": "rosella"}, place={"policy": "rosella"})
    without = mean_response(tmp_path, learn={"policy": "none"}, place={"policy": "best-fit"})
    assert learned < 0.8 * without
