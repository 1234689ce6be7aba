"""The experiment on DAG jobs without a cluster: jobs, objects, report, tables and picture."""

from dataclasses import replace
from statistics import median

import pytest
from msgspec import convert
from rich.console import Console

from demo_runs import CLEAN, EPOCH
from eclectus.api.dag_job import DagJob
from eclectus.kube.dag_jobs import shape_from
from eclectus_e2e.demo.dags.experiment import dag_experiment, merged
from eclectus_e2e.demo.dags.plan import DagPlan, DagPlans, TaskName, dag_job, dag_plans, mean_gap, task_of
from eclectus_e2e.demo.dags.run import DagRun
from eclectus_e2e.demo.schedulers import CARBYNE, DAG_SCHEDULERS, KUBE_SCHEDULER
from eclectus_e2e.demo.workload.queries import JOIN, SCAN, SUM, Query, Stage, path_stages, queries
from eclectus_e2e.pairs import alternating
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_e2e.testbed.kubelet.pod_times import PodRecord

MANY = queries(7, 1000, 2.0)
NODE = NodeSpec(name="n", group="all", speed=1.0, allocatable={"cpu": "2"})
SMALL = Query(
    "query-00",
    0.0,
    (Stage("scan-0", SCAN, 2, 3.0, ()), Stage("join-0", JOIN, 1, 2.0, ("scan-0",))),
)
OTHER = Query("query-01", 1.0, (Stage("scan-0", SCAN, 1, 1.0, ()),))


def test_jobs_have_the_shape_of_tpch_queries():
    assert median(len(job.stages) for job in MANY) in (8, 9)
    assert median(path_stages(job.stages) for job in MANY) == 5
    for job in MANY:
        kinds = [stage.kind for stage in job.stages]
        assert kinds.count(JOIN) == kinds.count(SCAN) - 1
        joined = [name for stage in job.stages for name in stage.parents]
        assert sorted(joined) == sorted(stage.name for stage in job.stages[:-1]), "each result is used once"
        assert kinds[-1] is SUM


def test_jobs_come_at_the_rate_that_is_asked_for_and_depend_on_the_seed_alone():
    assert MANY[-1].at_seconds / len(MANY) == pytest.approx(2.0, rel=0.1)
    assert MANY[0].at_seconds == 0.0
    assert queries(7, 20, 2.0) == MANY[:20] != queries(8, 20, 2.0)
    assert [job.stages for job in queries(7, 20, 5.0)] == [job.stages for job in MANY[:20]]


def test_the_gap_gives_the_load():
    fast = NodeSpec(name="f", group="all", speed=4.0, allocatable={"cpu": "2"})
    # 2 tasks of 3 s with half a core and one of 2 s with a core: 5 core-seconds on 2 + 8 cores of speed 1.
    assert mean_gap([SMALL], [NODE, fast], 0.5) == pytest.approx(5.0 / (0.5 * 10.0))


def test_a_dag_job_is_one_that_scheduler_and_operator_can_read():
    (plan,) = dag_plans(1, 1).pairs
    for job in plan.jobs:
        read = convert(dag_job(job, "eclectus", plan.mean_speed), DagJob)
        assert {stage.name for stage in shape_from(read).stages} == {stage.name for stage in job.stages}
    first = convert(dag_job(SMALL, "default-scheduler", 2.0), DagJob).spec.stages[0]
    assert first.estimate.seconds == 1.5
    assert first.template["spec"]["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("query-07-scan-0-13-0-1a2b3c4d", TaskName("query-07", "scan-0", 13)),
        ("query-07-scan-0-13-1-1a2b3c4d-r1", TaskName("query-07", "scan-0", 13)),
        ("pod-00013", None),
    ],
)
def test_the_name_of_a_pod_says_which_task_it_is(name, task):
    assert task_of(name) == task


def entry(name, started, finished, outcome="succeeded", node="n"):
    at, end = EPOCH + started, EPOCH + finished
    return PodRecord("default", f"{name}-0-1a2b3c4d", name, node, "", 1.0, at, end, outcome)


def records(shift):
    """Both jobs; each task of SMALL begins `shift` later than it could."""
    return [
        entry("query-00-scan-0-0", shift, shift + 3.0),
        entry("query-00-scan-0-1", shift, shift + 3.0),
        entry("query-00-join-0-0", shift + 3.5, shift + 5.5),
        entry("query-01-scan-0-0", 1.5, 2.5),
    ]


PLAN = DagPlan([NODE], [SMALL, OTHER], [CARBYNE, KUBE_SCHEDULER], 1)
PLANS = DagPlans([PLAN])


def run(entries, scheduler=CARBYNE):
    sent = {job.name: EPOCH + job.at_seconds for job in PLAN.jobs}
    return DagRun(scheduler, sent, [0.0, 0.0], entries, CLEAN)


def result(*entries):
    plans = DagPlans([replace(PLAN, schedulers=[CARBYNE])])
    return dag_experiment(plans).report(plans, [run(list(entries))]).pairs[0].schedulers[CARBYNE]


def test_a_job_takes_from_its_creation_to_the_end_of_its_last_task():
    found = result(*records(0.0))
    assert [job.seconds for job in found.jobs] == [5.5, 1.5]
    assert (found.job_seconds.mean, found.makespan, found.tasks) == (3.5, 5.5, 4)
    assert found.sound


def test_what_must_not_happen_is_counted():
    scans, join, other = records(0.0)[:2], records(0.0)[2], records(0.0)[3]
    lost = result(*scans, other)
    assert (lost.lost, lost.jobs[0].seconds, lost.sound) == (1, None, False)
    again = entry("query-00-scan-0-0", 4.0, 5.0)
    assert result(*scans, again, join, other).doubled == 1
    early = entry("query-00-join-0-0", 2.0, 4.0)
    assert result(*scans, early, other).early == 1
    crowd = [entry(f"query-00-join-0-{at}", 0.0, 1.0) for at in range(3)]  # three cores on a node of two
    assert result(*crowd).overcommitted == 1


def test_a_task_that_was_killed_and_ran_again_is_neither_lost_nor_doubled():
    killed = entry("query-00-scan-0-0", 0.0, 0.5, outcome="killed")
    found = result(killed, *records(1.0))
    assert (found.lost, found.doubled) == (0, 0)


def test_factors_tables_and_picture(tmp_path):
    experiment = dag_experiment(PLANS)
    runs = [run(records(0.0)), run(records(5.5), KUBE_SCHEDULER)]
    report = experiment.report(PLANS, runs)
    (pair,) = report.pairs
    factors = pair.factors[CARBYNE][KUBE_SCHEDULER]
    assert factors.mean == pytest.approx((11.0 + 1.5) / (5.5 + 1.5))
    assert (factors.median, factors.much_slower) == (1.5, 0.0)
    assert pair.factors[KUBE_SCHEDULER][CARBYNE].much_slower == 0.5
    console = Console(width=120, record=True)
    for table in experiment.tables(PLANS, runs, report):
        console.print(table)
    rows = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert f"{CARBYNE} 3.5 3.5 5.3 5.5" in rows
    assert f"{KUBE_SCHEDULER} 1.79 1.50 0.00 too few pairs" in rows
    assert f"{CARBYNE} 4 0 0 0 0 0 ms" in rows
    experiment.draw(PLANS, runs, report, tmp_path / "dags.png")
    assert (tmp_path / "dags.png").read_bytes().startswith(b"\x89PNG")


def test_spans_that_touch_are_one():
    assert list(merged([(3.0, 4.0), (0.0, 1.0), (0.5, 2.0), (2.0, 2.5)])) == [(0.0, 2.5), (3.0, 4.0)]
    assert list(merged([])) == []


def test_pairs_alternate_in_which_scheduler_begins_and_their_factors_have_an_interval():
    plans = DagPlans([PLAN] * 6)
    experiment = dag_experiment(plans)
    shifts = {CARBYNE: 0.0, KUBE_SCHEDULER: 5.5}
    runs = [run(records(shifts[name]), name) for _, name in alternating(PLAN.schedulers, 5)]
    report = experiment.report(plans, runs)  # as of a demo that was ended in its sixth pair
    assert [list(pair.schedulers) for pair in report.pairs] == [[CARBYNE, KUBE_SCHEDULER]] * 5
    found = report.compared[KUBE_SCHEDULER]
    assert (found.mean.low, found.mean.high) == (pytest.approx(12.5 / 7.0), pytest.approx(12.5 / 7.0))
    console = Console(width=140, record=True)
    for table in experiment.tables(plans, runs, report):
        console.print(table)
    text = " ".join(console.export_text().split())
    assert "5 pairs with 95 % intervals" in text
    assert "1.79 (1.79 to 1.79) 1.50 (1.50 to 1.50) 0.00 (0.00 to 0.00) won" in text


def test_the_plan_says_what_is_done_and_how_long_it_takes():
    text = str(dag_plans(1, 5))
    assert "30 nodes of hidden speeds; 30 jobs of the shape of TPC-H queries" in text
    assert "5 times with other jobs, in alternating order" in text
    plans = dag_plans(1, 2).pairs
    assert list(plans[0].schedulers) == DAG_SCHEDULERS
    assert plans[0].jobs != plans[1].jobs
    assert plans[0].nodes == plans[1].nodes
    (quick,) = dag_plans(1, 1, quick=True).pairs
    assert (len(quick.nodes), len(quick.jobs), list(quick.schedulers)) == (8, 4, [CARBYNE, KUBE_SCHEDULER])
