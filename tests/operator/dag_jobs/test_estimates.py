"""Estimates: declared, or of earlier runs."""

import pytest

from dag_jobs import NOW, dag_job, diamond, stage, stored
from eclectus.api.common import time_text
from eclectus.api.dag_job import StageStatus
from eclectus.api.names import ESTIMATED_SECONDS, JOB_KEY_LABEL, JOB_WORK_SECONDS, PATH_SECONDS
from eclectus_operator.dag_jobs.estimates import MOST_RUNS, History, estimates, job_key, stage_graph
from eclectus_operator.dag_jobs.tasks import assess


def run(number, seconds, name="etl", **metadata):
    """An earlier run of the job."""
    status = {"stages": [{"name": "a", "runSeconds": seconds}]}
    given = {"uid": f"u{number}", "creationTimestamp": time_text(NOW + number), **metadata}
    return stored(dag_job(f"{name}-{number}", [stage("a")]), status, **given)


def estimated(job, *earlier):
    history = History()
    for each in earlier:
        history.note(each)
    return estimates(job, history)["a"]


@pytest.mark.parametrize(
    ("metadata", "key"),
    [
        ({"name": "etl-20261123"}, "etl"),
        ({"name": "etl7"}, "etl"),
        ({"name": "etl"}, "etl"),
        ({"name": "7"}, "7"),
        ({"name": "etl-x7k2p", "generateName": "etl-"}, "etl-"),
        ({"name": "etl-1", "labels": {JOB_KEY_LABEL: "nightly"}}, "nightly"),
    ],
)
def test_runs_belong_together_by_label_or_by_name(metadata, key):
    body = dag_job(stages=[stage("a")])
    assert job_key(stored({**body, "metadata": {"namespace": "team"}}, **metadata).metadata) == key


def test_a_declared_estimate_wins():
    job = stored(dag_job("etl-9", [stage("a", estimate={"seconds": 5.0})]))
    assert estimated(job, run(1, 60.0)) == (5.0, "declared")


def test_the_median_of_earlier_runs_is_the_estimate():
    job = stored(dag_job("etl-9", [stage("a")]))
    assert estimated(job) == (None, "unknown")
    assert estimated(job, run(1, 60.0), run(2, 10.0), run(3, 20.0)) == (20.0, "history")
    assert estimated(job, run(1, 60.0, name="other")) == (None, "unknown")
    assert estimated(job, run(1, 60.0, namespace="else")) == (None, "unknown")


def test_only_the_last_runs_count():
    job = stored(dag_job("etl-99", [stage("a")]))
    old = [run(number, 1000.0) for number in range(MOST_RUNS)]
    new = [run(10 + number, 10.0) for number in range(MOST_RUNS)]
    assert estimated(job, *new, *old) == (10.0, "history")


def test_the_source_says_what_counts():
    by_history = stored(dag_job("etl-9", [stage("a", estimate={"seconds": 5.0, "source": "history"})]))
    assert estimated(by_history) == (5.0, "declared"), "until there is a history"
    assert estimated(by_history, run(1, 60.0)) == (60.0, "history")
    unknown = stored(dag_job("etl-9", [stage("a", estimate={"source": "unknown"})]))
    assert estimated(unknown, run(1, 60.0)) == (None, "unknown")


def test_a_run_is_noted_once():
    history, job = History(), stored(dag_job("etl-9", [stage("a")]))
    for seconds in (10.0, 20.0, 30.0):
        history.note(run(1, seconds))
    assert estimates(job, history)["a"] == (30.0, "history")


def test_pods_get_the_task_the_path_and_the_work_that_has_not_begun():
    stages = [{**each, "estimate": {"seconds": 10.0}} for each in diamond()]
    job = stored(dag_job(stages=stages))
    done = {"a": StageStatus("a", completed_indexes="0")}
    tasks = [assess(each, done.get(each.name, StageStatus(each.name)), [], NOW) for each in job.spec.stages]
    hints = stage_graph(job, History()).pod_hints(tasks)
    assert hints["a"] == {ESTIMATED_SECONDS: "10", PATH_SECONDS: "30", JOB_WORK_SECONDS: "50"}
    assert hints["d"][PATH_SECONDS] == "10"
