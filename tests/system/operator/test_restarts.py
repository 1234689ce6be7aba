"""Late pods of Jobs, under the real Job controller: ended once, made again elsewhere, and not counted."""

import pytest

from eclectus.api.names import RESTARTABLE, SPECULATIVE_LABEL, WORK_SECONDS
from eclectus_e2e.testbed.kubelet.nodes import ALLOCATABLE, NodeSpec
from live_cluster import wait

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

NAMESPACE = "batch"
VALUES = {"operator": {"enabled": True, "copies": {"namespaces": [NAMESPACE]}}}
# Those that a test slows have one slot: the Job controller waits twice as long after each pod that was ended.
SMALL = {**ALLOCATABLE, "cpu": "1"}
NODES = [NodeSpec(name=f"n{i}", group="all", speed=1.0, allocatable=SMALL) for i in range(2)]
NODES += [NodeSpec(name=f"n{i}", group="all", speed=1.0) for i in range(2, 5)]
SCHEDULER = {"profiles": [{"schedulerName": "eclectus", "speculate": {"policy": "mantri-lite"}}]}
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
TASKS = 14  # as many as there are slots
IGNORES = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
SPARED = {"podFailurePolicy": {"rules": [IGNORES]}, "podReplacementPolicy": "Failed"}


def slow_down(kubelets, node):
    """Let one node need 250 s for a task. Each test has its own: what is known to be slow gets no task."""
    kubelets.set_speed(1.0, group="all")
    kubelets.set_speed(0.02, nodes=[node])


def submit(admin, name, **spec):
    """A Job of as many pods as the nodes have room for, of which some run on the slow one."""
    main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {
            "labels": {SPECULATIVE_LABEL: "true", "eclectus.dev/class": "sort"},
            "annotations": {RESTARTABLE: "true", WORK_SECONDS: "5"},
        },
        "spec": {
            "schedulerName": "eclectus",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [main],
        },
    }
    counts = {"completions": TASKS, "parallelism": TASKS, "completionMode": "Indexed", "backoffLimit": 0}
    spec = {**counts, "template": template, **spec}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    admin.send("POST", JOBS, body)


def index(pod):
    return pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]


def is_complete(admin, name):
    conditions = admin.get(f"{JOBS}/{name}")["status"].get("conditions", [])
    return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)


def test_a_late_pod_of_a_job_is_ended_once_and_runs_elsewhere_and_the_job_has_no_failure(
    admin, kubelets, scheduler, operator
):
    one = operator()
    wait("it leads", lambda: one.count_in_log("leading"), seconds=300)
    slow_down(kubelets, "n0")
    submit(admin, "spared", **SPARED)
    first = {}

    def is_done():
        for pod in admin.pods().values():
            first.setdefault(index(pod), pod)
        return is_complete(admin, "spared")

    wait("the Job is complete", is_done, every=0.5, seconds=200)
    job = admin.get(f"{JOBS}/spared")["status"]
    assert (job["succeeded"], job.get("failed", 0)) == (TASKS, 0)
    restarted = admin.events("Restarted")
    names = [each["regarding"]["name"] for each in restarted]
    assert len(names) == len(set(names)) > 0, "each of them once"
    slow = {of for of, pod in first.items() if pod["metadata"]["name"] in names}
    assert len(slow) == len(names), "and no index twice"
    ended = {index(pod): pod for pod in admin.pods().values() if pod["status"]["phase"] == "Succeeded"}
    assert len(ended) == TASKS
    assert all(ended[of]["spec"]["nodeName"] != "n0" for of in slow)
    admin.send("DELETE", f"{JOBS}/spared", query={"propagationPolicy": "Background"})
    wait("no pod is left", lambda: not admin.pods())


def test_a_job_that_would_count_it_as_a_failure_is_left_alone_and_the_event_has_the_hint(
    admin, kubelets, scheduler, operator
):
    one = operator()
    wait("it leads", lambda: one.count_in_log("leading"), seconds=300)
    slow_down(kubelets, "n1")
    submit(admin, "counting")
    wait("it is said", lambda: admin.events("RestartRefused"), every=0.5, seconds=200)
    note = admin.events("RestartRefused")[0]["note"]
    assert "podReplacementPolicy: Failed" in note
    assert "Ignore on DisruptionTarget" in note
    assert not admin.get(f"{JOBS}/counting")["status"].get("failed")
