"""From tasks to pods and back."""

import pytest

from dag_jobs import NOW, dag_job, stage, stored, task_pod
from eclectus.api.common import time_text
from eclectus.api.names import (
    ESTIMATED_SECONDS,
    JOB_WORK_SECONDS,
    MEMORY_FACTORS,
    PATH_SECONDS,
    POOL_LABEL,
    STAGE_LABEL,
    TASK_INDEX_LABEL,
)
from eclectus_operator.dag_jobs import task_pods
from eclectus_operator.dag_jobs.estimates import hints
from eclectus_operator.dag_jobs.task_pods import NewPod

JOB = stored(dag_job(stages=[stage("a", tasks=10, memory="64Mi", retries=3)]))


def made(job=JOB, index=3, attempt=1, factors=None):
    (first, *_) = job.spec.stages
    before = [task_pod(memory_factors=factors)] if factors else []
    return NewPod(job, first, index, attempt, tuple(before)).body({})


def name(job=JOB, index=1, attempt=0, taken=()):
    (first, *_) = job.spec.stages
    return NewPod(job, first, index, attempt, tuple(task_pod(name=each) for each in taken)).name


def test_a_pod_belongs_to_its_job_and_says_which_task_it_is():
    body = made()
    (owner,) = body["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == ("uid-1", True)
    assert body["metadata"]["namespace"] == "team"
    assert body["spec"]["schedulerName"] == "eclectus"
    assert body["spec"]["restartPolicy"] == "Never"
    assert body["spec"]["containers"][0]["env"] == [{"name": "TASK_INDEX", "value": "3"}]
    found = task_pods.read({**body, "status": {"phase": "Running"}}, JOB)
    assert (found.stage, found.index, found.attempt, found.phase) == ("a", 3, 1, "Running")


def test_each_container_has_the_parameters_before_its_own_variables():
    own = [{"name": "PARAM_mode", "value": "mine"}, {"name": "OUT", "value": "/data/$(PARAM_day)"}]
    spec = {"initContainers": [{"name": "i"}], "containers": [{"name": "c", "env": own}]}
    given = [{"name": "day", "value": "2026-11-29"}, {"name": "mode", "value": "all"}]
    body = made(stored(dag_job(stages=[stage("a", template={"spec": spec})], parameters=given)), 0, 0)
    day = {"name": "PARAM_day", "value": "2026-11-29"}
    index = {"name": "TASK_INDEX", "value": "0"}
    assert body["spec"]["containers"][0]["env"] == [index, day, *own]
    assert body["spec"]["initContainers"][0]["env"] == [index, day, {"name": "PARAM_mode", "value": "all"}]


def test_a_parameter_arrives_as_it_was_written():
    """A kubelet would put the value of a variable for $(HOME), and $ for $$."""
    given = [{"name": "text", "value": "$(HOME) costs 5 $$"}]
    body = made(stored(dag_job(stages=[stage("a")], parameters=given)), 0, 0)
    assert body["spec"]["containers"][0]["env"][-1]["value"] == "$$(HOME) costs 5 $$$$"


def test_the_template_keeps_its_own_fields():
    spec = {
        "schedulerName": "other",
        "serviceAccountName": "me",
        "containers": [{"name": "c", "env": [{"name": "TASK_INDEX", "value": "x"}]}],
    }
    template = {"metadata": {"labels": {"team": "t", STAGE_LABEL: "z"}}, "spec": spec}
    body = made(stored(dag_job(stages=[stage("a", template=template)])), 0, 0)
    assert (body["spec"]["schedulerName"], body["spec"]["serviceAccountName"]) == ("other", "me")
    assert body["spec"]["containers"] == spec["containers"]
    assert body["metadata"]["labels"]["team"] == "t"
    assert body["metadata"]["labels"][STAGE_LABEL] == "a", "the operator's labels win"


@pytest.mark.parametrize(
    ("of_job", "of_template", "expected"),
    [("night", {}, "night"), ("night", {POOL_LABEL: "day"}, "day"), ("", {}, None)],
)
def test_pods_belong_to_the_jobs_pool_unless_the_template_names_one(of_job, of_template, expected):
    template = {"metadata": {"labels": of_template}, "spec": {"containers": [{"name": "c"}]}}
    body = made(stored(dag_job(stages=[stage("a", template=template)], pool=of_job)), 0, 0)
    assert body["metadata"]["labels"].get(POOL_LABEL) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"ownerReferences": [{"uid": "uid-1"}]},
        {"ownerReferences": [{"uid": "uid-2", "controller": True}]},
        {"ownerReferences": None},
        {"labels": {STAGE_LABEL: "a", TASK_INDEX_LABEL: "10", "eclectus.dev/attempt": "0"}},
        {"labels": {STAGE_LABEL: "b", TASK_INDEX_LABEL: "0", "eclectus.dev/attempt": "0"}},
        {"labels": {STAGE_LABEL: "a", TASK_INDEX_LABEL: "-1", "eclectus.dev/attempt": "0"}},
        {"labels": {STAGE_LABEL: "a", TASK_INDEX_LABEL: "0", "eclectus.dev/attempt": "99999999999"}},
        {"labels": {STAGE_LABEL: "a"}},
        {"labels": None},
    ],
)
def test_a_pod_of_another_owner_or_of_no_task_is_left_alone(change):
    body = made()
    assert task_pods.read({**body, "metadata": {**body["metadata"], **change}}, JOB) is None


def test_names_are_the_same_for_the_same_task_and_differ_otherwise():
    again = stored(dag_job(stages=[stage("a", tasks=10)]), uid="uid-2")
    other_stage = stored(dag_job(stages=[stage("a-1", tasks=10)]))
    names = {name(), name(attempt=1), name(other_stage), name(index=11), name(again)}
    assert len(names) == 5
    assert name() == name()
    first = name()
    assert name(taken=[first]) == f"{first}-r1"
    assert name(taken=[first, f"{first}-r1"]) == f"{first}-r2"


def test_the_longest_name_is_a_pods_name():
    job = stored(dag_job("j" * 63, [stage("s" * 40, tasks=10_000)]))
    assert len(name(job, 9_999, 20)) <= 253


def ended(reason, code, started=NOW, finished=NOW + 5, **status):
    end = {
        "reason": reason,
        "exitCode": code,
        "startedAt": time_text(started),
        "finishedAt": time_text(finished),
    }
    statuses = [{"name": "main", "state": {"terminated": end}}]
    return {"phase": "Failed" if code else "Succeeded", "containerStatuses": statuses, **status}


def test_a_container_that_had_too_little_memory_gets_twice_as_much_next_time():
    killed = task_pods.read({**made(factors={"main": 2}), "status": ended("OOMKilled", 137)}, JOB)
    assert killed.killed == ("main",)
    assert killed.why == "container main: OOMKilled, exit code 137"
    assert killed.raised_factors == {"main": 4}
    body = made(factors=killed.raised_factors)
    for part in ("requests", "limits"):
        assert body["spec"]["containers"][0]["resources"][part] == {"memory": str(4 * 64 * 2**20)}
    assert body["metadata"]["annotations"][MEMORY_FACTORS] == "main=4"
    failed = task_pods.read({**body, "status": ended("Error", 1)}, JOB)
    assert failed.raised_factors == {"main": 4}, "another failure keeps what it had"


@pytest.mark.parametrize("text", ["main", "main=", "main=x", "main=0", "=2", "main=-2"])
def test_a_memory_factor_that_cannot_be_read_is_left_out(text):
    body = made()
    body["metadata"]["annotations"][MEMORY_FACTORS] = text
    assert task_pods.read(body, JOB).memory_factors == {}


def test_memory_is_raised_to_64_times_at_most():
    body = made()
    body["metadata"]["annotations"][MEMORY_FACTORS] = "main=99999"
    found = task_pods.read({**body, "status": ended("OOMKilled", 137)}, JOB)
    assert found.raised_factors == {"main": 64}


def test_a_pod_that_was_evicted_or_deleted_has_not_failed():
    target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    body = {**made(), "status": ended("Error", 137, conditions=[target])}
    assert not task_pods.read(body, JOB).has_failed
    failed = {**made(), "status": ended("Error", 137)}
    assert task_pods.read(failed, JOB).has_failed
    failed["metadata"]["deletionTimestamp"] = time_text(NOW)
    assert not task_pods.read(failed, JOB).has_failed


def test_the_run_time_is_from_the_first_start_to_the_last_end():
    found = task_pods.read({**made(), "status": ended("Completed", 0)}, JOB)
    assert (found.run_seconds, found.ended) == (5.0, NOW + 5)


def test_estimates_that_are_known_are_annotations():
    assert hints(2.5, None, 40.0) == {ESTIMATED_SECONDS: "2.5", JOB_WORK_SECONDS: "40"}
    assert hints(None, 1e6, None) == {PATH_SECONDS: "1e+06"}
