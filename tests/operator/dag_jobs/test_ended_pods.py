"""Pods that ended in an init container, were refused by their node, or ended well on SIGTERM."""

from itertools import pairwise

import pytest

from dag_jobs import NOW, dag_job, stage, stored
from dag_operator_world import PODS, DagWorld, task_of
from eclectus.api.common import time_text
from eclectus_operator.dag_jobs import task_pods
from eclectus_operator.dag_jobs.task_pods import NewPod
from eclectus_operator.dag_jobs.tasks import MOST_BACKOFF_SECONDS, MOST_REFUSED

JOB = stored(dag_job(stages=[stage("a")]))
REFUSED = {
    "phase": "Failed",
    "reason": "UnexpectedAdmissionError",
    "message": "Pod was rejected: Allocate failed due to no healthy devices present",
}
TARGET = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


def terminated(now, code, reason="Error"):
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": time_text(now),
            "finishedAt": time_text(now),
        }
    }


def init_fails(now, reason="Error"):
    """As a kubelet reports a pod whose init container has failed."""
    return {
        "phase": "Failed",
        "initContainerStatuses": [{"name": "checkout", "state": terminated(now, 128, reason)}],
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}],
    }


def played(world, status_of, seconds):
    """When pods are created, in seconds, if every pod gets this status as soon as it exists."""
    begin, created = world.api.now, []

    def written(method, path, body):
        if method == "POST" and path.startswith(PODS):
            created.append(world.api.now - begin)

    world.api.watchers.append(written)
    while world.api.now < begin + seconds:
        world.sync()
        for path, pod in list(world.pods().items()):
            if pod.get("status", {}).get("phase", "Pending") == "Pending":
                world.api.touch(path)["status"] = status_of(world.api.now)
                pod["spec"]["nodeName"] = "n0"
        world.api.now += 1.0
    return created


def test_a_task_whose_init_container_fails_runs_again_with_the_back_off_of_any_failure():
    world = DagWorld(dag_job(stages=[stage("a", retries=3)]))
    assert played(world, init_fails, 120) == [0.0, 10.0, 30.0, 70.0]
    failed = world.condition("Failed")
    assert failed["message"].endswith("task 0: container checkout: Error, exit code 128")


def test_an_init_container_that_had_too_little_memory_gets_twice_as_much():
    template = {
        "spec": {
            "initContainers": [{"name": "checkout", "resources": {"limits": {"memory": "64Mi"}}}],
            "containers": [{"name": "main"}],
        }
    }
    world = DagWorld(dag_job(stages=[stage("a", template=template)]))
    played(world, lambda now: init_fails(now, "OOMKilled"), 15)
    again = next(pod for pod in world.pods().values() if task_of(pod) == ("a", 0, 1))
    limits = again["spec"]["initContainers"][0]["resources"]["limits"]
    assert limits["memory"] == str(128 * 2**20)


@pytest.mark.parametrize("reason", ["UnexpectedAdmissionError", "OutOfcpu", "NodeShutdown"])
def test_a_pod_that_its_node_refuses_is_no_failure_of_its_task_and_is_tried_rarer_and_rarer(reason):
    world = DagWorld(dag_job(stages=[stage("a", retries=0)]))
    created = played(world, lambda _: {**REFUSED, "reason": reason}, 2000)
    gaps = [after - before for before, after in pairwise(created)]
    assert gaps[:4] == [10.0, 20.0, 40.0, 80.0]
    assert MOST_BACKOFF_SECONDS <= gaps[-1] <= MOST_BACKOFF_SECONDS + 2
    assert not world.condition("Failed")
    assert world.stage("a")["retried"] == 0
    assert len(world.pods()) <= 8, "the oldest are deleted"
    assert "TasksRefused" in world.reasons()
    world.play(MOST_BACKOFF_SECONDS + 20)
    assert world.condition("Succeeded")["status"] == "True"


def test_a_refused_pod_is_replaced_by_one_that_would_rather_go_elsewhere():
    world = DagWorld(dag_job(stages=[stage("a")]))
    played(world, lambda _: REFUSED, 12)
    first, second = world.pods().values()
    assert "affinity" not in first["spec"]
    (term,) = second["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    elsewhere = {"key": "metadata.name", "operator": "NotIn", "values": ["n0"]}
    assert term == {"weight": 100, "preference": {"matchFields": [elsewhere]}}


def test_few_refused_pods_of_a_task_are_kept():
    world = DagWorld(dag_job(stages=[stage("a")]))
    created = played(world, lambda _: REFUSED, 4000)
    assert len(created) > 2 * MOST_REFUSED
    assert len(world.pods()) <= MOST_REFUSED + 1


def test_a_pod_past_its_own_deadline_has_failed():
    body = {**NewPod(JOB, JOB.spec.stages[0]).body({}), "status": {**REFUSED, "reason": "DeadlineExceeded"}}
    assert task_pods.read(body, JOB).has_failed


def test_a_suspended_task_that_exits_with_0_on_sigterm_has_not_succeeded():
    world = DagWorld(dag_job(stages=[stage("train"), stage("publish", "train")]))
    world.play(4)
    (path,) = world.pods()
    world.change(suspend=True)
    world.sync()
    world.api.now += 2.0
    world.end(path, 0)
    world.sync()
    world.play(4)
    assert world.stage("train")["succeeded"] == 0
    world.change(suspend=False)
    world.sync()
    assert world.tasks() == [("train", 0, 0)], "it runs again, and the next stage waits for it"
    world.play(40)
    assert world.condition("Succeeded")["status"] == "True"


@pytest.mark.parametrize(
    ("ended", "metadata", "conditions", "succeeded"),
    [
        (5, {}, [], True),
        # The room was needed no more before the pod was deleted: nothing has stopped it.
        (5, {}, [{**TARGET, "lastTransitionTime": time_text(NOW + 3)}], True),
        (5, {"deletionTimestamp": time_text(NOW + 33), "deletionGracePeriodSeconds": 30}, [], False),
        (5, {"deletionTimestamp": time_text(NOW + 33), "deletionGracePeriodSeconds": 30}, [TARGET], False),
        (5, {"deletionTimestamp": time_text(NOW + 39), "deletionGracePeriodSeconds": 30}, [TARGET], True),
    ],
)
def test_what_ended_before_the_signal_has_succeeded(ended, metadata, conditions, succeeded):
    body = NewPod(JOB, JOB.spec.stages[0]).body({})
    body["metadata"] |= metadata
    statuses = [{"name": "main", "state": terminated(NOW + ended, 0, "Completed")}]
    body["status"] = {"phase": "Succeeded", "containerStatuses": statuses, "conditions": conditions}
    assert task_pods.read(body, JOB).has_succeeded is succeeded
