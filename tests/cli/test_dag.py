"""`eclectus dag`: what is said of DAG jobs, of their stages, and of why these wait."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
import yaml
from click.testing import CliRunner

from dag_job_objects import dag_job, stage
from eclectus.api.names import STAGE_LABEL
from eclectus.cli.dag import NO_PLAN, UNREPORTED, jobs_table, rows, stages_table
from eclectus.cli.main import program

NOW = datetime(2026, 3, 1, 12, 5, tzinfo=UTC)
ALL = [
    stage("read", tasks=4),
    stage("left", "read", tasks=2),
    stage("right", "read"),
    stage("sum", "left", "right"),
]
PLAN = {
    "share": {"cpu": "1500m", "memory": "1610612736"},
    "finishSeconds": 100.0,
    "deadline": "2026-03-01T12:06:40.500000Z",
    "slips": 2,
    "slipSeconds": 12.5,
    "lent": {"cpu": "500m"},
    "lentSeconds": {"cpu": 1234.5, "memory": 5368709120.0},
}


def condition(kind, status="True", reason="R", message=""):
    at = "2026-03-01T12:00:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def stage_status(name, **fields):
    return {"name": name, "estimateSeconds": 10.0, "estimateSource": "declared", **fields}


def running(*stages):
    """The status of a job with a plan; other stages have none."""
    found = [stage_status(**each) for each in stages]
    return {"conditions": [condition("Ready")], "stages": found, "plan": PLAN}


HALF = running(
    {"name": "read", "succeeded": 3, "running": 1},
    {"name": "left", "waiting": 2},
    {"name": "right", "waiting": 1},
    {"name": "sum", "waiting": 1},
)


def pod(stage_name, message="", owner="job-1"):
    said = [{"type": "PodScheduled", "status": "False", "message": message}] if message else []
    return {
        "metadata": {
            "namespace": "shop",
            "name": "p",
            "labels": {STAGE_LABEL: stage_name},
            "ownerReferences": [{"uid": owner, "controller": True}],
        },
        "status": {"conditions": said},
    }


def row(status, *pods, stages=ALL, **fields):
    (found,), problems = rows([dag_job(*stages, status=status, **fields)], pods, NOW)
    assert problems == []
    return found


def why(found):
    return {each["name"]: each["why"] for each in found["stages"]}


def test_a_stage_waits_for_parents_that_have_not_ended():
    reasons = why(row(HALF))
    assert reasons["read"] == []
    assert reasons["left"] == reasons["right"] == ["waits for read (3 of 4 tasks have succeeded)"]
    assert reasons["sum"] == [
        "waits for left (0 of 2 tasks have succeeded), right (0 of 1 tasks have succeeded)"
    ]


def test_pods_that_cannot_be_placed_say_why_and_tasks_without_a_pod_are_counted():
    status = running({"name": "read", "waiting": 4})
    full = "0/30 nodes are available: 30 Insufficient cpu."
    found = row(status, pod("read", full), pod("read"), pod("read", full), pod("read", full, owner="other"))
    assert why(found)["read"] == [
        f"2 pods: {full}",
        f"1 pod: {UNREPORTED}",
        "1 task without a pod yet: the operator creates a bounded number ahead",
    ]


def test_a_job_that_its_pool_does_not_take_says_so_though_it_runs():
    why_not = "no Pool research admits pods of namespace shop"
    found = row({**HALF, "conditions": [condition("Ready"), condition("PoolRefused", message=why_not)]})
    assert (found["state"], found["message"]) == ("Running", why_not)
    assert f"shop/etl: {why_not}" in "\n".join(jobs_table([found], NOW, all_namespaces=True, wide=False))


def test_nothing_of_a_job_that_is_suspended_or_has_ended_waits():
    ended = {**HALF, "conditions": [condition("Failed", message="task read-3 failed 4 times")]}
    for found in (row(ended), row(HALF, spec={"suspend": True})):
        assert set(map(len, why(found).values())) == {0}


def test_a_stage_is_due_so_early_that_the_longest_chain_behind_it_ends_at_the_deadline():
    due = {each["name"]: each["due"] for each in row(HALF)["stages"]}
    assert due == {
        "read": None,  # nothing of it is left to start
        "left": "2026-03-01T12:06:20.500000+00:00",
        "right": "2026-03-01T12:06:20.500000+00:00",
        "sum": "2026-03-01T12:06:30.500000+00:00",
    }


def test_without_an_estimate_behind_it_a_stage_has_no_due_time():
    status = running({"name": "left", "waiting": 2}, {"name": "sum", "waiting": 1, "estimateSeconds": None})
    assert [each["due"] for each in row(status)["stages"]] == [None] * 4


@pytest.mark.parametrize(
    ("status", "fields", "state"),
    [
        ({}, {}, "New"),
        (HALF, {}, "Running"),
        (running({"name": "read", "waiting": 4}), {}, "Waiting"),
        (HALF, {"spec": {"suspend": True}}, "Suspended"),
        (HALF, {"deletionTimestamp": "2026-03-01T12:04:00Z"}, "Deleting"),
        ({"conditions": [condition("Ready", "False", "InvalidStages", "a cycle")]}, {}, "InvalidStages"),
        ({"conditions": [condition("Ready"), condition("Succeeded")]}, {}, "Succeeded"),
        ({"conditions": [condition("Failed")]}, {"spec": {"suspend": True}}, "Failed"),
    ],
)
def test_the_state_of_a_job(status, fields, state):
    assert row(status, **fields)["state"] == state


def test_a_cycle_has_no_due_times_and_ends():
    circle = [stage("a", "b"), stage("b", "a")]
    status = running({"name": "a", "waiting": 1}, {"name": "b", "waiting": 1})
    assert [each["due"] for each in row(status, stages=circle)["stages"]] == [None, None]


def test_a_job_that_cannot_be_read_is_named_and_hides_no_other():
    broken = dag_job(stage("a", tasks="many"), name="broken")
    found, (problem,) = rows([broken, dag_job(*ALL)], [], NOW)
    assert [each["name"] for each in found] == ["etl"]
    assert problem.startswith("DagJob shop/broken cannot be read: ")


def test_jobs_that_have_ended_are_last():
    done = dag_job(*ALL, name="done", status={"completionTime": "2026-03-01T12:04:00Z"})
    found, _ = rows([done, dag_job(*ALL, name="old"), dag_job(*ALL, name="at-once")], [], NOW)
    assert [each["name"] for each in found] == ["at-once", "old", "done"]


def test_the_table_of_jobs():
    heads, line = jobs_table([row(HALF)], NOW, all_namespaces=False, wide=False)
    assert heads.split() == [
        "NAME",
        "STATE",
        "TASKS",
        "SHARE",
        "LENT",
        "BORROWED",
        "FINISH",
        "DEADLINE",
        "AGE",
    ]
    assert " ".join(line.split()) == "etl Running 3/8 cpu=1.5 memory=1.5Gi cpu=0.5 - 100s in 100s 5m"
    heads, line = jobs_table([row(HALF, spec={"pool": "night"})], NOW, all_namespaces=True, wide=True)
    assert heads.split()[0] == "NAMESPACE"
    assert " ".join(line.split()).endswith("5m night 2 times, 12s cpu=1234 memory=5Gi - -")
    reserved = row({**HALF, "plan": {**PLAN, "reservedNode": "n7"}})
    _, line = jobs_table([reserved], NOW, all_namespaces=False, wide=True)
    assert line.split()[-1] == "n7"


def test_a_job_that_has_ended_holds_nothing_and_keeps_what_it_has_lent_in_all():
    ended = {**HALF, "conditions": [condition("Succeeded")]}
    found = row(ended)
    assert (found["share"], found["lent"], found["borrowed"], found["finishSeconds"]) == ({}, {}, {}, None)
    assert (found["slips"], found["lentSeconds"]) == (2, PLAN["lentSeconds"])


def test_a_job_without_a_plan_has_no_figures():
    _, line, _ = jobs_table([row({})], NOW, all_namespaces=False, wide=False)
    assert line.split() == ["etl", "New", "0/8", "-", "-", "-", "-", "-", "5m"]


def test_what_has_gone_wrong_stands_below_the_table():
    failed = {"conditions": [condition("Failed", message="task read-3 failed 4 times")]}
    *_, last = jobs_table([row(failed)], NOW, all_namespaces=False, wide=False)
    assert last == "shop/etl: task read-3 failed 4 times"


@pytest.mark.parametrize(
    ("spec", "of_stage", "said"),
    [
        ({"maxParallel": 3}, {"maxParallel": 2}, "maxParallel of the stage is 2"),
        ({"maxParallel": 3}, {}, "maxParallel of the job is 3"),
        ({"maxParallel": 4}, {"maxParallel": 4}, "the operator creates a bounded number ahead"),
    ],
)
def test_tasks_that_a_limit_holds_back_say_so(spec, of_stage, said):
    status = running({"name": "read", "waiting": 2, "running": 2})
    found = row(status, stages=[stage("read", tasks=4, **of_stage)], spec=spec)
    assert why(found)["read"] == [f"2 tasks without a pod yet: {said}"]


def test_the_table_of_stages():
    long = "0/30 nodes are available: " + "30 Insufficient cpu, " * 9
    status = running({"name": "read", "waiting": 3, "running": 1, "runSeconds": 9.0})
    found = row(status, pod("read", long), pod("read", "due in 4 s"))
    narrow, wide = (list(stages_table(found, NOW, wide=wide)) for wide in (False, True))
    assert narrow[0].split() == ["STAGE", "AFTER", "STATE", "TASKS", "RUNNING", "ESTIMATE", "DUE", "WHY"]
    assert narrow[1].split()[:7] == ["read", "-", "Running", "0/4", "1", "10s", "-"], "sum has no estimate"
    assert narrow[1].endswith("…")
    assert narrow[2].strip() == "1 pod: due in 4 s"
    assert narrow[3].strip().startswith("1 task without a pod yet")
    assert wide[1].endswith(long.strip())
    assert "declared" in wide[1]


# -- the command -------------------------------------------------------------------------------------


@pytest.fixture
def cluster(monkeypatch):
    """A cluster with one job, unless a test sets `jobs`."""
    found = SimpleNamespace(jobs=[dag_job(*ALL, status=HALF)], pods=[], namespaces=[])

    async def list_objects(api, path, selectors=None):
        if path.endswith("/pods"):
            return found.pods
        found.namespaces.append(path.partition("/namespaces/")[2].partition("/")[0])
        return found.jobs

    monkeypatch.setattr("eclectus.kubeclient.client.list_objects", list_objects)
    return found


def output(kubeconfig, *arguments, code=0):
    result = CliRunner().invoke(program, ["dag", "--kubeconfig", str(kubeconfig), *arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_a_name_shows_the_stages_too(cluster, kubeconfig):
    assert "STAGE" not in output(kubeconfig)
    lines = output(kubeconfig, "etl").splitlines()
    first = [line.split()[0] for line in lines if line]
    assert first == ["NAME", "etl", "STAGE", "read", "left", "right", "sum"]


def test_where_nothing_is_planned_the_dashes_are_explained(cluster, kubeconfig):
    assert NO_PLAN not in output(kubeconfig)
    cluster.jobs = [dag_job(*ALL, status={**HALF, "plan": None})]
    assert NO_PLAN in output(kubeconfig, "etl").splitlines()


def test_json_and_yaml_have_the_same(cluster, kubeconfig):
    (found,) = json.loads(output(kubeconfig, "-o", "json"))
    assert [found] == yaml.safe_load(output(kubeconfig, "-o", "yaml"))
    assert (found["share"], found["lent"]) == (PLAN["share"], PLAN["lent"])
    assert (found["lentSeconds"], found["borrowedSeconds"]) == (PLAN["lentSeconds"], {})
    assert found["stages"][0]["succeeded"] == 3


def test_the_namespace_is_the_contexts_or_the_given_one_or_all(cluster, kubeconfig):
    output(kubeconfig)
    output(kubeconfig, "-n", "shop")
    output(kubeconfig, "-A")
    assert cluster.namespaces == ["mine", "shop", ""]
    assert "give --all-namespaces alone" in output(kubeconfig, "-A", "etl", code=2)


def test_the_error_of_an_unknown_name_has_the_nearest_one(cluster, kubeconfig):
    assert "did you mean 'etl'?" in output(kubeconfig, "elt", code=2)
    assert "did you mean 'suspend'?" in output(kubeconfig, "suspnd", code=2), "a verb without what it is for"
    cluster.jobs = []
    assert "there is no DagJob 'elt' in namespace mine; there is none" in output(kubeconfig, "elt", code=2)
    assert output(kubeconfig) == "there is no DagJob in namespace mine\n"


def test_an_unreachable_server_is_an_error(kubeconfig):
    result = CliRunner().invoke(program, ["dag", "--kubeconfig", str(kubeconfig)])
    assert result.exit_code != 0
