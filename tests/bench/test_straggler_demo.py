"""The experiment on stragglers: its jobs, and what is compared."""

from collections import Counter
from dataclasses import replace

import pytest
from msgspec import convert

from eclectus.api.dag_job import DagJob
from eclectus.api.names import STRAGGLERS
from eclectus_bench.experiments.stragglers import (
    LOAD,
    NODES,
    SLOWEST,
    TASKS,
    straggler_plan,
    straggler_report,
    tables,
)
from eclectus_bench.stragglers import STRAGGLING
from eclectus_e2e.demo.dags.run import DagRun
from eclectus_e2e.demo.schedulers import COPIES, NO_COPIES
from eclectus_e2e.testbed.kubelet.pod_times import Counters, PodRecord

PLAN = straggler_plan(seed=3, pairs=2, jobs=5)
CLEAN = Counters(0, 0, 0, 0, {}, 0, 0)
EPOCH = 1000.0


def test_both_halves_of_a_pair_get_the_same_jobs_and_pairs_differ():
    first, second = PLAN.of(0), PLAN.of(1)
    assert first.jobs == PLAN.jobs == PLAN.of(0).jobs
    assert [job.at_seconds for job in second.jobs] != [job.at_seconds for job in first.jobs]
    seeds = [
        convert(plan.job_object(plan.jobs[0], "eclectus"), DagJob)
        .spec.stages[0]
        .template["metadata"]["annotations"][STRAGGLERS]
        for plan in (first, second)
    ]
    assert seeds == ["0.05 5.0 3", "0.05 5.0 4"]


def test_a_job_may_have_copies_and_the_arrivals_are_the_load():
    assert convert(PLAN.job_object(PLAN.jobs[0], "eclectus"), DagJob).spec.speculative
    many = straggler_plan(seed=1, pairs=1, jobs=2000)
    work = sum(job.core_seconds for job in many.jobs) * STRAGGLING
    room = 2 * (len(many.nodes) - 1 + SLOWEST)
    assert work / (many.jobs[-1].at_seconds * room) == pytest.approx(LOAD, rel=0.05)


def record(job, number, seconds, suffix="", outcome="succeeded"):
    name = f"{job}-part-0-{number}-0-abcde{suffix}"
    at = (int(job[-2:]) * TASKS + number) % NODES
    node = f"node-{at + 1:02d}"
    return PodRecord("demo", name, name, node, "work", 4.0, EPOCH, EPOCH + seconds, outcome)


def run_of(scheduler, seconds, copies=(), without=0):
    jobs = [job.name for job in PLAN.jobs]
    entries = [record(job, number, seconds) for job in jobs for number in range(TASKS)][without:]
    return DagRun(scheduler, dict.fromkeys(jobs, EPOCH), [0.0], [*entries, *copies], CLEAN)


def test_ratios_are_of_the_timed_jobs_within_pairs_beside_those_of_the_simulator():
    lost = record("query-02", 1, 2.0, "-copy", "killed")
    runs = [run_of(COPIES, 6.0, [lost]), run_of(NO_COPIES, 8.0), run_of(NO_COPIES, 10.0), run_of(COPIES, 5.0)]
    report = straggler_report(PLAN, runs)
    assert report.sound
    assert report.ratios["p99"].mean == pytest.approx((0.75 * 0.5) ** 0.5)
    assert [(half.scheduler, half.pair, half.copies, half.won) for half in report.halves] == [
        (COPIES, 0, 1, 0),
        (NO_COPIES, 0, 0, 0),
        (NO_COPIES, 1, 0, 0),
        (COPIES, 1, 0, 0),
    ]
    assert report.simulated["mean"].pairs == 2
    assert 0.3 < report.simulated["mean"].mean < 1.0
    assert Counter(type(each) is str for each in tables(report))[True] > 2


def test_a_task_without_an_end_is_lost_and_its_pair_left_out():
    runs = [run_of(COPIES, 6.0), run_of(NO_COPIES, 8.0, without=3 * TASKS - 1)]
    report = straggler_report(replace(PLAN, pairs=1), runs)
    assert not report.sound
    assert report.halves[1].lost == 3 * TASKS - 1
    assert report.ratios["mean"].pairs == 0
