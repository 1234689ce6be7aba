"""Copies of stragglers on a real API server: the chart's account and policies, a scheduler, fake nodes."""

import pytest

from dag_jobs import stage
from eclectus.api.names import (
    API_VERSION,
    COPY_OF_LABEL,
    DAG_JOB,
    IDEMPOTENT,
    SPECULATIVE_LABEL,
    STRAGGLING,
    WORK_SECONDS,
)
from eclectus.kubeclient.api_errors import ApiError
from eclectus.maths.copies import copy_name
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.controlplane.components import audit_log
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from eclectus_hack.permissions import forbidden, requests
from live_cluster import pod, wait
from live_operator import rights_of_operator

pytestmark = pytest.mark.live

NAMESPACE = "batch"
VALUES = {"operator": {"enabled": True, "dagJobs": {"enabled": True}, "copies": {"namespaces": [NAMESPACE]}}}
NODES = [NodeSpec(name=f"n{i:02}", group="all", speed=0.25 if i == 0 else 1.0) for i in range(30)]
SCHEDULER: dict[str, object] = {}
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
JOBS = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/dagjobs"
MERGE = "application/merge-patch+json"


@pytest.fixture(autouse=True)
def clean(admin, kubelets, scheduler, operator):
    kubelets.reset()
    yield
    admin.send("DELETE", JOBS)
    admin.send("DELETE", PODS, query={"gracePeriodSeconds": "0"})
    wait("no pod is left", lambda: not admin.pods())


def straggle(admin, name, status="True"):
    """Say of a pod what a scheduler would."""
    condition = {
        "type": STRAGGLING,
        "status": status,
        "reason": "Late",
        "message": "100 s left, 9 s elsewhere",
    }
    admin.patch(f"{PODS}/{name}/status", {"status": {"conditions": [condition]}})


def bare(name, work, **more):
    body = pod(name, work=work, **more)
    body["metadata"]["labels"] = {SPECULATIVE_LABEL: "true"}
    body["metadata"]["annotations"][IDEMPOTENT] = "true"
    return body


def running(admin):
    return [name for name, each in admin.pods().items() if each["status"]["phase"] == "Running"]


def submit(admin, name, tasks, work):
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"annotations": {WORK_SECONDS: str(work)}}, "spec": {"containers": [main]}}
    spec = {"speculative": True, "stages": [stage("a", tasks=tasks, retries=0, template=template)]}
    body = {"apiVersion": API_VERSION, "kind": DAG_JOB, "metadata": {"name": name}, "spec": spec}
    return admin.send("POST", JOBS, body)


def condition(admin, name, kind):
    found = (admin.get(f"{JOBS}/{name}") or {}).get("status", {}).get("conditions", [])
    return next((each for each in found if each["type"] == kind), {})


def test_only_the_operator_makes_pods_with_the_label_of_copies(admin):
    forged = bare("forged", 1)
    forged["metadata"]["labels"][COPY_OF_LABEL] = "x"

    def refusal():
        try:
            admin.send("POST", PODS, forged, query={"dryRun": "All"})
        except ApiError as error:
            return str(error)
        return ""

    wait("an API server knows a policy seconds after it was made", refusal)
    assert "only the operator makes pods with the label eclectus.dev/copy-of" in refusal()
    admin.create([bare("a", 600)])
    labels = {"metadata": {"labels": {COPY_OF_LABEL: "x"}}}
    with pytest.raises(ApiError, match="nobody changes it"):
        admin.send("PATCH", f"{PODS}/a", labels, content_type=MERGE)
    admin.send("PATCH", f"{PODS}/a", {"metadata": {"labels": {"other": "x"}}}, content_type=MERGE)


def test_a_template_with_the_label_of_copies_or_what_cannot_be_shared_is_refused(admin):
    main = {"containers": [{"name": "main", "image": "none"}]}
    for template, more, message in (
        ({"metadata": {"labels": {COPY_OF_LABEL: "x"}}, "spec": main}, {}, "which only the operator makes"),
        ({"spec": {**main, "hostname": "one"}}, {"speculative": True}, "cannot share"),
        ({"spec": {**main, "schedulingGroup": {"podGroupName": "g"}}}, {"speculative": True}, "cannot share"),
    ):
        job = {
            "apiVersion": API_VERSION,
            "kind": DAG_JOB,
            "metadata": {"name": "refused"},
            "spec": {"stages": [stage("a", template=template, **more)]},
        }
        with pytest.raises(ApiError, match=message):
            admin.send("POST", JOBS, job)


def test_a_bare_pod_and_its_copy_leave_one_success(admin, operator, installed, plane):
    operator().wait_leading()
    admin.create([bare("a", 600), bare("b", 600, hostname="one")])
    wait("they run", lambda: len(running(admin)) == 2)
    first = admin.pods()["a"]
    straggle(admin, "a")
    straggle(admin, "b")
    wait("the copy exists", lambda: "a-copy" in admin.pods())
    wait("it is on another node", lambda: admin.bound().get("a-copy"))
    assert admin.bound()["a-copy"] != first["spec"]["nodeName"]
    copy = admin.pods()["a-copy"]
    assert copy["metadata"]["labels"][COPY_OF_LABEL] == first["metadata"]["uid"]
    wait("why the other gets none is said", lambda: admin.events("CopyRefused"))
    (refused,) = admin.events("CopyRefused")
    assert (refused["regarding"]["name"], "hostname" in refused["note"]) == ("b", True)
    straggle(admin, "a", "False")
    report(admin, "a-copy")
    wait("the original is gone", lambda: "a" not in admin.pods())
    assert admin.pods()["a-copy"]["status"]["phase"] == "Succeeded"
    wait("an event says so", lambda: admin.events("CopyWon"))
    used = requests(audit_log(plane.directory), installed.operator_user)
    assert not forbidden(rights_of_operator(VALUES), used)


def report(admin, name):
    """A pod's success, as its kubelet would report it."""
    now = "2026-03-01T12:00:00Z"
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
    container = {"name": "c", "image": "none", "imageID": "", "ready": False, "restartCount": 0}
    body = {"phase": "Succeeded", "containerStatuses": [{**container, "state": {"terminated": ended}}]}
    admin.send("PATCH", f"{PODS}/{name}/status", {"status": body}, content_type=MERGE)


def test_jobs_end_with_one_success_an_index_however_often_the_operator_is_killed(admin, operator, kubelets):
    """Pods are marked as stragglers here as soon as they run, whatever a scheduler thinks of them.

    They end when the operator has been killed often enough: a start may take long.
    """
    names, tasks = [f"job-{i}" for i in range(5)], 6
    for name in names:
        submit(admin, name, tasks, work=600)
    marked, kills = set(), 0
    one = operator().wait_leading()

    def is_done():
        nonlocal kills
        for name, each in admin.pods().items():
            index = each["metadata"]["labels"]["eclectus.dev/task-index"]
            is_original = COPY_OF_LABEL not in each["metadata"]["labels"]
            if is_original and index in "024" and each["status"]["phase"] == "Running" and name not in marked:
                straggle(admin, name)
                marked.add(name)
        copies = [each for each in admin.pods().values() if COPY_OF_LABEL in each["metadata"]["labels"]]
        if kills < 4 and len(copies) > kills:
            kills += 1
            one.kill()
            admin.send("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{chart.NAMESPACE}/leases")
            one.start()
            if kills == 4:
                kubelets.set_speed(100.0, group="all")
        return all(condition(admin, name, "Succeeded").get("status") == "True" for name in names)

    wait("all jobs succeed", is_done, every=0.2)
    assert kills == 4
    assert marked
    assert {copy_name(name) for name in marked} & copies_ever(admin)
    wait("no pod is left but one success an index", lambda: left(admin) == len(names) * tasks)
    for name in names:
        (found,) = admin.get(f"{JOBS}/{name}")["status"]["stages"]
        assert (found["succeeded"], found["retried"], found["completedIndexes"]) == (tasks, 0, "0-5")


def copies_ever(admin):
    return {note["note"].partition(": ")[2].split()[0] for note in admin.events("CopyCreated")}


def left(admin):
    """How many pods there are; -1 unless each has succeeded and no two are of one index."""
    pods = admin.pods().values()
    keys = {
        (
            each["metadata"]["labels"]["eclectus.dev/dag-job"],
            each["metadata"]["labels"]["eclectus.dev/task-index"],
        )
        for each in pods
    }
    is_clean = len(keys) == len(pods) and all(each["status"]["phase"] == "Succeeded" for each in pods)
    return len(pods) if is_clean else -1
