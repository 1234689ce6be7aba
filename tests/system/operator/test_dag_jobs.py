"""DagJobs on a real API server: the chart's account and roles, a scheduler, fake nodes."""

import json

import pytest
from click.testing import CliRunner

from dag_jobs import stage
from eclectus.api.common import time_text
from eclectus.api.dag_job import FailedTasks
from eclectus.api.names import API_VERSION, DAG_JOB, DAG_JOB_LABEL, INSTANCE_LABEL, WORK_SECONDS
from eclectus.cli.main import program
from eclectus.kubeclient.api_errors import ApiError
from eclectus_e2e.testbed.controlplane.components import audit_log
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_hack.permissions import forbidden, requests
from eclectus_operator.dag_jobs.tasks import indexes_text
from live_cluster import Admin, wait
from live_operator import rights_of_operator, unused

pytestmark = pytest.mark.live

WITHOUT = {"operator": {"enabled": True}}
VALUES = {"operator": {"enabled": True, "dagJobs": {"enabled": True}}}
NODES = [NodeSpec(name=f"n{i}", group="all", speed=1.0) for i in range(4)]
PROFILE = {
    "schedulerName": "eclectus",
    "order": {"policy": "carbyne"},
    "place": {"policy": "least-allocated"},
}
SCHEDULER = {"profiles": [PROFILE]}
PROBE = {"metadata": {"labels": {INSTANCE_LABEL: "blue"}}, "spec": {"containers": [{"name": "main"}]}}
MERGE = "application/merge-patch+json"


@pytest.fixture
def admin(plane, installed, kubelets, scheduler, namespace):
    kubelets.reset()
    with Admin(plane.kubeconfig, namespace) as admin:
        yield admin
        admin.send("DELETE", jobs(admin))  # the client deletes the pods: Kubernetes takes its time for that


@pytest.fixture
def operator(operator):
    return operator().wait_leading()


def jobs(admin):
    return f"/apis/{API_VERSION}/namespaces/{admin.namespace}/dagjobs"


def work(name, *parents, seconds=0.3, **fields):
    """A stage whose pods run for so long."""
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [main]}
    template = {"metadata": {"annotations": {WORK_SECONDS: str(seconds)}}, "spec": spec}
    return stage(name, *parents, template=template, **fields)


def submit(admin, name, *stages, **spec):
    body = {
        "apiVersion": API_VERSION,
        "kind": DAG_JOB,
        "metadata": {"name": name},
        "spec": {"stages": list(stages), **spec},
    }
    return admin.send("POST", jobs(admin), body)


def status(admin, name):
    return (admin.get(f"{jobs(admin)}/{name}") or {}).get("status", {})


def condition(admin, name, kind):
    found = status(admin, name).get("conditions", [])
    return next((each for each in found if each["type"] == kind), {})


def wait_succeeded(admin, name):
    wait(f"{name} succeeds", lambda: condition(admin, name, "Succeeded").get("status") == "True")


def change(admin, name, **spec):
    admin.send("PATCH", f"{jobs(admin)}/{name}", {"spec": spec}, content_type=MERGE)


def report(admin, name, phase, code, message=""):
    """A pod's end, as its kubelet would report it; `message`: the termination message of its container."""
    now = time_text(1.0e9)
    ended = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "message": message,
        "startedAt": now,
        "finishedAt": now,
    }
    container = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    body = {"phase": phase, "containerStatuses": [{**container, "state": {"terminated": ended}}]}
    path = f"/api/v1/namespaces/{admin.namespace}/pods/{name}/status"
    admin.send("PATCH", path, {"status": body}, content_type=MERGE)


def expire(admin, installed):
    """The Lease of an operator that was killed expires: here at once, which saves 15 s each time."""
    admin.send("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{installed.namespace}/leases")


def running(admin):
    return [name for name, pod in admin.pods().items() if pod["status"]["phase"] == "Running"]


def test_a_diamond_succeeds_stage_by_stage(admin, operator):
    submit(admin, "diamond", work("a", tasks=2), work("b", "a", tasks=2), work("c", "a"), work("d", "b", "c"))
    wait_succeeded(admin, "diamond")
    found = status(admin, "diamond")
    assert found["tasks"] == "6/6"
    assert found["stages"][0]["completedIndexes"] == "0-1"
    pods = admin.pods().values()
    assert len(pods) == 6
    times = {}
    for each in pods:
        ended = each["status"]["containerStatuses"][0]["state"]["terminated"]
        name = each["metadata"]["labels"]["eclectus.dev/stage"]
        begin, end = times.get(name, ("9", "0"))
        times[name] = min(begin, ended["startedAt"]), max(end, ended["finishedAt"])
    assert times["a"][1] <= min(times["b"][0], times["c"][0])
    assert max(times["b"][1], times["c"][1]) <= times["d"][0]
    metadata = admin.get(f"{jobs(admin)}/diamond")["metadata"]
    assert not metadata.keys() & {"finalizers", "annotations"}, "nothing must delay its deletion"
    wait("an event says so", lambda: admin.events("AllTasksSucceeded"))


def test_a_task_that_fails_runs_again(admin, operator):
    submit(admin, "job", work("a", seconds=600, retries=1))
    wait("it runs", lambda: running(admin))
    (first,) = running(admin)
    report(admin, first, "Failed", 1)
    wait("it runs again", lambda: [name for name in running(admin) if name != first])
    (second,) = [name for name in running(admin) if name != first]
    assert admin.pods()[second]["metadata"]["labels"]["eclectus.dev/attempt"] == "1"
    report(admin, second, "Succeeded", 0)
    wait_succeeded(admin, "job")
    assert status(admin, "job")["stages"][0]["retried"] == 1
    wait("an event says so", lambda: admin.events("TasksRetried"))


def test_suspended_resumed_and_cancelled_by_the_command(admin, plane, operator):
    def ask(verb):
        place = ["-n", admin.namespace, "--kubeconfig", str(plane.kubeconfig)]
        return CliRunner().invoke(program, ["dag", verb, "job", *place]).output

    submit(admin, "job", work("a"), work("b", "a", tasks=3, seconds=600))
    wait("b runs", lambda: len(running(admin)) == 3)
    assert ask("suspend") == "dagjob job: suspended\n"
    wait("its pods are gone", lambda: list(admin.phases()) == ["Succeeded"])
    wait("it says so", lambda: condition(admin, "job", "Suspended").get("status") == "True")
    assert ask("resume") == "dagjob job: resumed\n"
    wait("they are back", lambda: len(running(admin)) == 3)
    assert status(admin, "job")["stages"][1]["retried"] == 0
    wait("it says so", lambda: condition(admin, "job", "Suspended").get("status") == "False")
    assert ask("cancel") == "dagjob job: cancelled\n"
    wait("nothing is left", lambda: not admin.pods())


def test_a_failed_job_is_retried_by_the_command_and_keeps_what_has_succeeded(admin, plane, operator):
    def retry(*options):
        place = ["-n", admin.namespace, "--kubeconfig", str(plane.kubeconfig)]
        return CliRunner().invoke(program, ["dag", "retry", "job", *options, *place]).output

    def of_b():
        return [name for name in running(admin) if name.startswith("job-b-")]

    parameters = [{"name": "day", "value": "1"}]
    submit(admin, "job", work("a"), work("b", "a", seconds=600, retries=0), parameters=parameters)
    wait("b runs", of_b)
    for other in ([], [{"name": "day", "value": "2"}]):
        with pytest.raises(ApiError, match="only be changed together with a higher retry"):
            change(admin, "job", parameters=other)
    assert retry() == "error: DagJob job: has not failed\n"
    report(admin, of_b()[0], "Failed", 1)
    wait("it has failed", lambda: condition(admin, "job", "Failed").get("status") == "True")
    again = "dagjob job: runs again, with the 1/2 tasks that have succeeded\n"
    assert retry("-p", "day=2") == again
    wait("b runs again", of_b)
    env = admin.pods()[of_b()[0]]["spec"]["containers"][0]["env"]
    assert {"name": "PARAM_day", "value": "2"} in env
    assert condition(admin, "job", "Failed")["reason"] == "Retried"
    report(admin, of_b()[0], "Succeeded", 0)
    wait_succeeded(admin, "job")
    assert admin.phases() == {"Failed": 1, "Succeeded": 2}, "a ran once"
    assert retry() == "error: DagJob job: has succeeded\n"


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
def test_a_deleted_job_leaves_no_pod(admin, operator, policy):
    name = policy.lower()
    submit(admin, name, work("a", tasks=3, seconds=600))
    wait("it runs", lambda: len(running(admin)) == 3)
    admin.send("DELETE", f"{jobs(admin)}/{name}", {"propagationPolicy": policy})
    wait("everything is gone", lambda: not admin.pods() and admin.get(f"{jobs(admin)}/{name}") is None)


def test_operator_and_scheduler_that_are_killed_lose_no_task_and_run_none_twice(
    admin, operator, scheduler, kubelets, installed
):
    seconds = {"seconds": 1.0, "estimate": {"seconds": 1.0}}
    submit(admin, "job", work("a", tasks=20, **seconds), work("b", "a", tasks=20, **seconds))
    decided = len(scheduler.lines("deciding"))
    for kill in range(1, 4):
        operator.wait_leading(kill)
        scheduler.wait_deciding(decided + kill - 1)
        wait("some have run", lambda kill=kill: len(ended(admin, kubelets)) >= 10 * kill)
        operator.kill()
        scheduler.kill()
        expire(admin, installed)
        operator.start()
        scheduler.start()
    wait_succeeded(admin, "job")
    assert status(admin, "job")["tasks"] == "40/40"
    assert status(admin, "job")["plan"]["deadline"], "the plan goes on"
    runs = [each.name for each in ended(admin, kubelets)]
    assert len(runs) == len(set(runs)) == 40
    assert {each.outcome for each in ended(admin, kubelets)} == {"succeeded"}
    assert [each["retried"] for each in status(admin, "job")["stages"]] == [0, 0]


def ended(admin, kubelets):
    """The pods of this test that have ended; those of the one before may end late."""
    return [each for each in kubelets.pod_times() if each.namespace == admin.namespace]


def test_what_can_never_run_is_refused_or_fails_at_once(admin, operator):
    for stages, message in (
        ([work("a", "a")], "a stage cannot depend on itself"),
        ([work("a", "x")], "dependsOn must name stages of this job"),
        ([work("a"), work("a")], "Duplicate value"),
        ([work("a", tasks=0)], "should be greater than or equal to 1"),
        ([stage("a", template={"spec": {"containers": []}})], "should have at least 1 items"),
        ([work(f"s{i}", tasks=10_000) for i in range(11)], "at most 100000 tasks"),
        ([stage("a", template=PROBE)], "which only the operator makes"),
    ):
        with pytest.raises(ApiError, match=message):
            submit(admin, "refused", *stages)
    submit(admin, "circle", work("a", "b"), work("b", "a"))
    no_image = {"spec": {"containers": [{"name": "main"}]}}
    submit(admin, "template", work("a"), stage("b", "a", template=no_image))
    submit(admin, "good", work("a"))
    wait_succeeded(admin, "good")
    wait("one depends on itself", lambda: "circle" in condition(admin, "circle", "Failed").get("message", ""))
    wait("one is no pod", lambda: condition(admin, "template", "Failed").get("reason") == "InvalidTemplate")
    assert "stages[b].template: " in condition(admin, "template", "Failed")["message"]
    assert "image: Required value" in condition(admin, "template", "Failed")["message"]
    assert {each["metadata"]["labels"][DAG_JOB_LABEL] for each in admin.pods().values()} == {"good"}
    with pytest.raises(ApiError, match="stages cannot be changed"):
        change(admin, "good", stages=[work("a", tasks=2)])


def test_what_a_task_hands_on_outlives_its_pod(admin, operator):
    asked = {"seconds": 600, "inputs": [{"stage": "a", "output": True}]}
    submit(admin, "job", work("a", tasks=2, seconds=600), work("b", "a", **asked))
    wait("a runs", lambda: len(running(admin)) == 2)
    first, second = sorted(running(admin))
    report(admin, first, "Succeeded", 0, "s3://x/0\n")
    report(admin, second, "Succeeded", 0, "x" * 2000)
    wait("b runs", lambda: running(admin))
    (name,) = running(admin)
    uid = admin.pods()[name]["metadata"]["uid"]
    for each in (first, second, name):
        admin.send("DELETE", f"/api/v1/namespaces/{admin.namespace}/pods/{each}")
    wait("b runs again", lambda: any(admin.pods()[each]["metadata"]["uid"] != uid for each in running(admin)))
    (again,) = admin.pods().values()
    assert again["metadata"]["annotations"]["eclectus.dev/output.a"] == '["s3://x/0",null]'
    assert again["spec"]["containers"][0]["env"][-1]["name"] == "OUTPUT_A"
    problem = "it has 2,000 bytes as JSON, at most 1,024 are handed on"
    expected = [{"task": 0, "text": "s3://x/0"}, {"task": 1, "problem": problem}]
    assert status(admin, "job")["stages"][0]["outputs"] == expected
    wait("an event says so", lambda: admin.events("OutputRefused"))


def test_no_more_pods_exist_at_a_time_than_may(admin, operator):
    gang = {"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}, "spec": PROBE["spec"]}
    for fields, spec in (({"maxParallel": 2}, {}), ({}, {"maxParallel": 2})):
        with pytest.raises(ApiError, match="maxParallel must be at least the tasks"):
            submit(admin, "refused", work("a"), stage("g", tasks=3, template=gang, **fields), **spec)
    long = {"tasks": 4, "seconds": 600}
    submit(admin, "job", work("a", maxParallel=1, **long), work("b", **long), maxParallel=3)
    wait("three run", lambda: len(running(admin)) == 3)
    assert sorted(name[:6] for name in admin.pods()) == ["job-a-", "job-b-", "job-b-"]
    change(admin, "job", maxParallel=4)
    wait("one more runs", lambda: len(running(admin)) == 4)
    (first,) = [name for name in running(admin) if name.startswith("job-a-0-")]
    report(admin, first, "Succeeded", 0)
    wait("the next one runs", lambda: any(name.startswith("job-a-1-") for name in running(admin)))
    assert len(running(admin)) == 4


def test_a_quota_is_reported_and_the_job_goes_on_when_it_is_raised(admin, operator):
    path = f"/api/v1/namespaces/{admin.namespace}/resourcequotas"
    admin.send("POST", path, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    wait("the quota is counted", lambda: admin.get(f"{path}/few").get("status", {}).get("used"))
    submit(admin, "job", work("a", tasks=3))
    found = {}

    def is_exceeded():  # a task at a time runs all the same
        found.update(condition(admin, "job", "Ready"))
        return found.get("reason") == "QuotaExceeded"

    wait("its condition says so", is_exceeded)
    assert "exceeded quota: few" in found["message"]
    admin.send("PATCH", f"{path}/few", {"spec": {"hard": {"pods": "10"}}}, content_type=MERGE)
    wait_succeeded(admin, "job")
    wait("it is ready", lambda: condition(admin, "job", "Ready")["status"] == "True")


def test_the_largest_status_is_accepted(admin, operator):
    """Every second of 100,000 tasks has succeeded, and the others have failed one to three times."""
    submit(admin, "wide", *(work(f"s{i}", tasks=10_000) for i in range(10)), suspend=True)
    # Its first status would otherwise be written over the one below.
    wait("the operator has seen it", lambda: status(admin, "wide").get("tasks") == "0/100000")
    failed = [
        {"failures": each.failures, "indexes": each.indexes}
        for each in (FailedTasks(n + 1, indexes_text(range(2 * n + 1, 10_000, 6))) for n in range(3))
    ]
    done = indexes_text(range(0, 10_000, 2))
    stages = [{"name": f"s{i}", "completedIndexes": done, "failedTasks": failed} for i in range(10)]
    body = {"status": {"stages": stages}}
    written = admin.send("PATCH", f"{jobs(admin)}/wide/status", body, content_type=MERGE)
    assert written["status"]["stages"][9]["completedIndexes"] == done
    assert len(json.dumps(written)) < 1_000_000
    wait("the operator reads it", lambda: status(admin, "wide").get("tasks") == "50000/100000")


def test_a_template_is_taken_as_by_a_batch_job(admin, operator):
    """As Helm renders empty values, and Go programs a template's metadata."""
    main = {"name": "main", "image": "none", "env": None, "resources": None}
    metadata = {"name": "x", "creationTimestamp": None, "annotations": {WORK_SECONDS: "0.3"}}
    spec = {"nodeSelector": None, "volumes": None, "containers": [main]}
    submit(admin, "job", stage("a", template={"metadata": metadata, "spec": spec}))
    wait_succeeded(admin, "job")


def test_a_job_that_has_succeeded_stays_so_whatever_is_written_late(admin, operator):
    submit(admin, "job", work("a"))
    wait_succeeded(admin, "job")
    late = [each for each in status(admin, "job")["conditions"] if each["type"] != "Succeeded"]
    with pytest.raises(ApiError, match="a job that has succeeded or failed stays so"):
        admin.send("PATCH", f"{jobs(admin)}/job/status", {"status": {"conditions": late}}, content_type=MERGE)


def test_a_policy_that_denies_pods_for_a_while_fails_no_job(admin, operator):
    """Its refusal has the status of an invalid object, by default."""
    api = "/apis/admissionregistration.k8s.io/v1"
    policies, bindings = f"{api}/validatingadmissionpolicies", f"{api}/validatingadmissionpolicybindings"
    name, here = f"freeze-{admin.namespace}", {"kubernetes.io/metadata.name": admin.namespace}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    validation = {"expression": "false", "message": "no new pods before Monday"}
    policy = {"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]}
    match = {"namespaceSelector": {"matchLabels": here}}
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": match}
    admin.send("POST", policies, {"metadata": {"name": name}, "spec": policy})
    admin.send("POST", bindings, {"metadata": {"name": name}, "spec": binding})
    try:
        probe = {"metadata": {"name": "try"}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
        wait("it is in force", lambda: denied(admin, probe))
        submit(admin, "job", work("a"))
        wait(
            "its condition says so", lambda: condition(admin, "job", "Ready").get("reason") == "PodForbidden"
        )
        assert not condition(admin, "job", "Failed")
    finally:
        admin.send("DELETE", f"{bindings}/{name}")
        admin.send("DELETE", f"{policies}/{name}")
    wait_succeeded(admin, "job")


def denied(admin, pod):
    """Whether a policy refuses a pod, which is created in a dry run."""
    try:
        admin.send("POST", f"/api/v1/namespaces/{admin.namespace}/pods", pod, query={"dryRun": "All"})
    except ApiError:
        return True
    return False


def test_a_finished_job_is_deleted_and_the_permissions_are_those_that_are_used(
    admin, operator, plane, installed
):
    """The last test of this file: the audit log has the requests of all tests above."""
    submit(admin, "short", work("a"), ttlSecondsAfterFinished=1)
    wait("it is gone", lambda: admin.get(f"{jobs(admin)}/short") is None)
    used = requests(audit_log(plane.directory), installed.operator_user)
    rights = rights_of_operator(VALUES)
    assert forbidden(rights, used) == set()
    of_other_worlds = (("pods", "get"), ("namespaces", "get"))  # names that are taken, and Pools
    unseen = {each for each in rights if (each.resource, each.verb) in of_other_worlds}
    of_dag_jobs = rights - rights_of_operator(WITHOUT) - unseen
    assert unused(of_dag_jobs, plane, installed.operator_user) == set()
