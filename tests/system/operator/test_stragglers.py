"""DagJobs whose stragglers the scheduler finds: one slow node of 30, and the operator is killed meanwhile."""

import pytest

from dag_jobs import stage
from eclectus.api.names import API_VERSION, COPY_OF_LABEL, DAG_JOB, WORK_SECONDS
from eclectus_e2e.testbed import chart
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec
from live_cluster import Admin, wait
from live_operator import PATIENT

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

NAMESPACE = "batch"
VALUES = {"operator": {"enabled": True, "dagJobs": {"enabled": True}, "copies": {"namespaces": [NAMESPACE]}}}
SLOW = "n00"
NODES = [NodeSpec(name=f"n{i:02}", group="all", speed=0.1 if i == 0 else 1.0) for i in range(30)]
SCHEDULER = {"profiles": [{"schedulerName": "eclectus", "speculate": {"policy": "spark"}}]}
JOBS = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/dagjobs"
TASKS = 12
MEMBERS = ("eclectus.dev/dag-job", "eclectus.dev/task-index")


@pytest.fixture(scope="module")
def admin(plane):
    with Admin(plane.kubeconfig, NAMESPACE) as admin:
        yield admin


@pytest.fixture(scope="module")
def installed(plane, admin):
    return chart.install(plane.kubeconfig, values=VALUES)  # its roles are in that namespace


def submit(admin, name):
    """A job whose first task is placed on the slow node, where it would take 60 s."""
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"annotations": {WORK_SECONDS: "6"}}, "spec": {"containers": [main]}}
    spec = {"speculative": True, "stages": [stage("a", tasks=TASKS, retries=0, template=template)]}
    admin.send(
        "POST", JOBS, {"apiVersion": API_VERSION, "kind": DAG_JOB, "metadata": {"name": name}, "spec": spec}
    )


def has_succeeded(admin, name):
    found = (admin.get(f"{JOBS}/{name}") or {}).get("status", {}).get("conditions", [])
    return any(each["type"] == "Succeeded" and each["status"] == "True" for each in found)


def is_clean(admin, count):
    """Whether there are so many pods, each has succeeded, and no two are of one task."""
    pods = admin.pods().values()
    tasks = {tuple(each["metadata"]["labels"][label] for label in MEMBERS) for each in pods}
    return len(tasks) == len(pods) == count and all(each["status"]["phase"] == "Succeeded" for each in pods)


def test_a_slow_node_is_overtaken_and_each_task_succeeds_once(admin, kubelets, scheduler, operator):
    names, kills, one = [f"job-{i}" for i in range(4)], 0, operator(times=PATIENT)
    wait("it leads", lambda: one.count_in_log("leading"), seconds=300)
    for name in names:
        submit(admin, name)

    def is_done():
        nonlocal kills
        copies = [each for each in admin.pods().values() if COPY_OF_LABEL in each["metadata"]["labels"]]
        if kills < 3 and len(copies) > kills:
            kills += 1
            one.kill()
            admin.send("DELETE", f"/apis/coordination.k8s.io/v1/namespaces/{chart.NAMESPACE}/leases")
            one.start()
        return all(has_succeeded(admin, name) for name in names)

    wait("all jobs succeed", is_done, every=1.0, seconds=400)
    assert kills
    wait("one success a task is left", lambda: is_clean(admin, len(names) * TASKS))
    for name in names:
        (found,) = admin.get(f"{JOBS}/{name}")["status"]["stages"]
        assert (found["succeeded"], found["retried"]) == (TASKS, 0)
    winners = [each for each in admin.pods().values() if COPY_OF_LABEL in each["metadata"]["labels"]]
    assert winners, "a copy has won"
    assert all(each["spec"]["nodeName"] != SLOW for each in winners)
