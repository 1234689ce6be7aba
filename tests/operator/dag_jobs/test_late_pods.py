"""Pods of DagJobs that are late before they run, or in their end: each stage has a time and a message."""

from __future__ import annotations

import pytest

from dag_jobs import dag_job, stage
from dag_operator_world import EVENTS, PODS, DagWorld
from eclectus.api.common import time_text
from eclectus.kubeclient.api_errors import RejectedError
from fake_api import Crash, Object

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class LateWorld(DagWorld):
    """A job of one task; `deadlines` of its pods, `spec` of their template, `fate` of each on its node."""

    def __init__(self, spec: Object | None = None, **deadlines: int) -> None:
        self.fate, self.is_silent = "starts", False
        main = {"name": "main", "image": "reg:5000/a:1"}
        template = {"spec": {"containers": [main], **(spec or {})}}
        job = dag_job(stages=[stage("a", retries=0, template=template)])
        job["spec"]["podDeadlines"] = deadlines
        super().__init__(job)

    def run(self, path: str) -> None:
        """The pod is bound, and its kubelet does with it what is its fate."""
        pod, now = self.api.touch(path), time_text(self.api.now)
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
        states = {
            "no image": {"waiting": {"reason": "ImagePullBackOff", "message": "no such host"}},
            "creating": {"waiting": {"reason": "ContainerCreating"}},
            "initializing": {"waiting": {"reason": "PodInitializing"}},
        }
        if self.fate == "waits":
            unbound = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes have room"}
            pod["status"] = {"phase": "Pending", "conditions": [unbound]}
            return
        if self.fate == "starts":
            super().run(path)
            return
        pod["spec"]["nodeName"] = "n0"
        main = {"name": "main", "state": states[self.fate]}
        pod["status"] = {"phase": "Pending", "conditions": [bound], "containerStatuses": [main]}
        if self.fate == "initializing":
            init = {"name": "init", "state": {"running": {"startedAt": now}}}
            pod["status"]["initContainerStatuses"] = [init]

    def pod(self) -> Object:
        """The one pod that there is."""
        (found,) = self.pods().values()
        return found

    def notes(self, reason: str) -> list[str]:
        """The notes of the events of this reason."""
        events = (each for path, each in self.api.objects.items() if path.startswith(EVENTS))
        return [each["note"] for each in events if each["reason"] == reason]

    def leave_on_silent_node(self) -> str:
        """The pod is deleted, and its node does not answer; its uid."""
        (path,) = self.pods()
        uid = str(self.api.objects[path]["metadata"]["uid"])
        stamp = {"deletionTimestamp": time_text(self.api.now), "deletionGracePeriodSeconds": 0}
        self.api.touch(path)["metadata"] |= stamp
        self.is_silent = True
        return uid

    def cluster_step(self) -> None:
        """As in other worlds, but for what a silent node does not end."""
        silent = {path: pod for path, pod in self.pods().items() if pod["metadata"].get("deletionTimestamp")}
        super().cluster_step()
        if self.is_silent:
            self.api.objects.update(silent)


def uids(world):
    return {pod["metadata"]["uid"] for pod in world.pods().values()}


@pytest.mark.parametrize(
    ("fate", "stage_of_it", "message"),
    [
        ("no image", "pullingSeconds", "still pulling image reg:5000/a:1 after 60 s (node n0): no such host"),
        ("creating", "startingSeconds", "still not started after 60 s (node n0)"),
    ],
)
def test_a_pod_that_does_not_start_is_replaced_rather_elsewhere_and_costs_no_retry(
    fate, stage_of_it, message
):
    world = LateWorld(**{stage_of_it: 60})
    world.fate = fate
    world.play(50)
    first = uids(world)
    assert world.notes("TasksReplaced") == []
    world.fate = "starts"
    world.play(16)
    assert uids(world).isdisjoint(first), "one pod at a time, and another one"
    (note,) = world.notes("TasksReplaced")
    assert note.startswith("run again, rather on other nodes: a[0]: pod job-a-0-0-")
    assert note.endswith(message)
    (term,) = world.pod()["spec"]["affinity"]["nodeAffinity"][PREFERRED]
    assert term["preference"]["matchFields"][0]["values"] == ["n0"]
    world.play(30)
    assert world.condition("Succeeded")["status"] == "True"
    assert world.stage("a")["retried"] == 0


def test_an_operator_that_crashes_while_it_replaces_a_pod_leaves_one():
    whole = LateWorld(pullingSeconds=10)
    whole.fate = "no image"
    whole.play(40)
    for call in range(len(whole.api.calls)):
        world = LateWorld(pullingSeconds=10)
        world.fate = "no image"
        world.api.crash_at = (call, True)
        for _ in range(20):
            world.cluster_step()
            try:
                world.sync()
            except Crash:
                world.start()
            assert len(world.pods()) <= 1
            world.api.now += 2
        world.fate = "starts"
        world.play(40)
        assert world.condition("Succeeded").get("status") == "True", f"call {call}"


def test_an_init_container_may_run_for_as_long_as_it_takes():
    world = LateWorld(startingSeconds=10, pullingSeconds=10)
    world.fate = "initializing"
    world.play(100)
    assert world.notes("TasksReplaced") == []


def test_after_its_init_container_a_pod_has_the_whole_time_for_its_start():
    world = LateWorld(startingSeconds=30)
    world.fate = "initializing"
    world.play(100)
    (path,) = world.pods()
    status = world.api.touch(path)["status"]
    ended = {"terminated": {"exitCode": 0, "finishedAt": time_text(world.api.now)}}
    status["initContainerStatuses"][0]["state"] = ended
    world.play(26)
    assert world.notes("TasksReplaced") == []
    world.play(10)
    assert len(world.notes("TasksReplaced")) == 1


def test_a_job_whose_pod_finds_no_node_in_time_fails_and_leaves_no_pod():
    world = LateWorld(schedulingSeconds=60)
    world.fate = "waits"
    world.play(56)
    assert not world.condition("Failed")
    world.play(10)
    failed = world.condition("Failed")
    assert failed["reason"] == "SchedulingDeadlineExceeded"
    assert failed["message"].startswith("stage a: pod job-a-0-0-")
    assert failed["message"].endswith("still not on a node after 60 s: 0/1 nodes have room")
    assert not world.pods()


def test_a_job_whose_pods_are_refused_for_too_long_fails():
    world = LateWorld(creatingSeconds=60)

    def refuse(method, path, body):
        if method == "POST" and path.startswith(PODS):
            raise RejectedError(f"POST {path}", 403, 'pods "a" is forbidden: exceeded quota: pods')

    world.api.watchers.append(refuse)
    world.play(56)
    assert not world.condition("Failed")
    assert world.condition("Ready")["reason"] == "QuotaExceeded"
    world.play(10)
    failed = world.condition("Failed")
    assert failed["reason"] == "CreatingDeadlineExceeded"
    assert "no pod of stage a could be created for 60 s" in failed["message"]
    assert "exceeded quota" in failed["message"]


@pytest.mark.parametrize("fate", ["waits", "starts"])
def test_by_default_a_job_waits_for_a_node_as_long_as_it_takes(fate):
    world = LateWorld()
    world.fate = "waits"
    world.play(4000, step=50.0)
    assert not world.condition("Failed")
    world.fate = fate
    world.play(30)
    assert bool(world.condition("Succeeded")) is (fate == "starts")


def test_a_pod_whose_node_does_not_answer_is_deleted_without_it():
    world = LateWorld(deletingSeconds=100)
    world.play(4)
    gone = world.leave_on_silent_node()
    world.play(90)
    assert gone in uids(world), "replaced after a minute, but still there"
    world.play(20)
    assert gone not in uids(world)
    (note,) = world.notes("PodsForced")
    assert "still being deleted after 100 s (node n0)" in note


def test_one_that_has_claims_stays_and_that_is_said_once():
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": "rwo"}}
    world = LateWorld({"volumes": [volume]}, deletingSeconds=100)
    world.play(4)
    gone = world.leave_on_silent_node()
    world.play(200)
    assert gone in uids(world)
    (note,) = world.notes("PodsLeaving")
    assert "because it has claims" in note
