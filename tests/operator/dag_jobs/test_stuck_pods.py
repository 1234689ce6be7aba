"""Pods of DagJobs that their nodes cannot start: it is said, costs no retry, and is over when they start."""

import pytest

from dag_jobs import NOW, dag_job, stage, stored
from dag_operator_world import DagWorld
from eclectus.api.common import time_text
from eclectus_operator.dag_jobs import task_pods
from eclectus_operator.dag_jobs.task_pods import NewPod

JOB = stored(dag_job(stages=[stage("a")]))


def waiting(reason, message="", kind="containerStatuses"):
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", kind: [{"name": "main", "state": state}]}


def stuck(world, path, reason, message=""):
    """The pod is on a node, whose kubelet cannot start its container."""
    pod = world.api.touch(path)
    pod["spec"]["nodeName"] = "n0"
    pod["status"] = waiting(reason, message)


@pytest.mark.parametrize(
    ("reason", "condition"),
    [
        ("ErrImagePull", "ImageNotPulled"),
        ("ImagePullBackOff", "ImageNotPulled"),
        ("InvalidImageName", "ImageNotPulled"),
        ("CreateContainerConfigError", "ContainerNotCreated"),
    ],
)
def test_a_pod_that_does_not_start_is_reported_until_it_does(reason, condition):
    world = DagWorld(dag_job(stages=[stage("a", retries=0), stage("b"), stage("c", "a", "b")]))
    world.sync()
    path = next(each for each in world.pods() if "/job-a-" in each)
    stuck(world, path, reason, "no such host")
    world.play(20)
    ready = world.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", condition)
    name = path.rpartition("/")[2]
    assert ready["message"] == (
        f"stage a: container main of pod {name} does not start: {reason}: no such host"
    )
    assert world.reasons() == [condition], "one event, however often it is tried"
    assert world.stage("b")["succeeded"] == 1, "other stages go on"
    world.run(path)
    world.play(40)
    assert world.condition("Ready")["status"] == "True"
    assert world.condition("Succeeded")["status"] == "True"
    assert world.stage("a")["retried"] == 0


def test_the_reasons_of_a_kubelet_that_tries_again_are_one_condition():
    world = DagWorld(dag_job(stages=[stage("a", tasks=3)]))
    world.sync()
    for at in range(8):
        for path in world.pods():
            stuck(world, path, ("ErrImagePull", "ImagePullBackOff")[at % 2], f"attempt {at}")
        world.play(2)
    assert world.reasons() == ["ImageNotPulled"]
    assert world.condition("Ready")["message"].count("nor do 2 other pods") == 1
    patches = [method for method, _ in world.api.calls if method == "PATCH"]
    assert len(patches) <= 3, "its message alone is not worth a write"


@pytest.mark.parametrize(
    "status",
    [
        waiting("ContainerCreating"),
        waiting("PodInitializing"),
        {"phase": "Pending"},
        {**waiting("ErrImagePull"), "phase": "Running"},
    ],
)
def test_a_container_that_takes_its_time_is_no_problem(status):
    body = NewPod(JOB, JOB.spec.stages[0]).body({})
    assert task_pods.read({**body, "status": status}, JOB).stuck is None


def test_an_init_container_counts_and_a_pod_that_is_deleted_does_not():
    body = NewPod(JOB, JOB.spec.stages[0]).body({})
    status = waiting("ErrImagePull", kind="initContainerStatuses")
    assert task_pods.read({**body, "status": status}, JOB).stuck.container == "main"
    body["metadata"]["deletionTimestamp"] = time_text(NOW)
    assert task_pods.read({**body, "status": status}, JOB).stuck is None
