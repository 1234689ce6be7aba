"""Preemption on a real API server: kubelets end the victims, schedulers die, others nominate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from eclectus_e2e.testbed.kubelet.handle import KubeletControl
from live_cluster import Admin, Scheduler, pod, wait

pytestmark = pytest.mark.live

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PROFILE = {
    "schedulerName": "eclectus",
    "place": {"policy": "least-allocated"},
    "relieve": {"policy": "preemption"},
}
NODE = "n03"


@pytest.fixture(autouse=True)
def priority_classes(admin: Admin) -> Iterator[None]:
    """`urgent`, and `patient`, whose pods evict nobody."""
    admin.send("POST", CLASSES, {"metadata": {"name": "urgent"}, "value": 1000})
    admin.send("POST", CLASSES, {"metadata": {"name": "patient"}, "value": 1000, "preemptionPolicy": "Never"})
    yield
    for name in ("urgent", "patient"):
        admin.send("DELETE", f"{CLASSES}/{name}")


def on_the_node(name: str, cpu: str, **spec: Any) -> Any:
    """A pod that may run on one node only, and works for long."""
    required = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [required]}}
    }
    return pod(name, cpu=cpu, work=1000, affinity=affinity, **{"terminationGracePeriodSeconds": 2, **spec})


def crowd(admin: Admin, **spec: Any) -> None:
    """The node, of four cores, is full of pods of priority 0."""
    admin.create([on_the_node(f"low-{at}", "1", **spec) for at in range(4)])
    wait("all run", lambda: admin.phases().get("Running") == 4)


def terminating(admin: Admin) -> set[str]:
    """The names of the pods that are being deleted."""
    return {name for name, each in admin.pods().items() if each["metadata"].get("deletionTimestamp")}


def wait_until_left(admin: Admin, pods: int) -> None:
    """Wait for so many pods: a victim's room is free when its phase is final, before its object is gone."""
    wait(f"{pods} pods are left", lambda: len(admin.pods()) == pods)


def test_victims_end_gracefully_and_the_preemptor_takes_their_room(
    admin: Admin, kubelet: KubeletControl, scheduler: Callable[..., Scheduler]
) -> None:
    running = scheduler(profiles=[PROFILE]).wait_deciding()
    crowd(admin)
    before = {name: each["metadata"]["uid"] for name, each in admin.pods().items()}
    admin.create([on_the_node("high", "2", priorityClassName="urgent")])
    wait("the preemptor is bound", lambda: admin.bound().get("high") == NODE)
    wait_until_left(admin, 3)
    left = admin.pods()
    victims = before.keys() - left.keys()
    assert len(victims) == 2
    wait("two events", lambda: len(admin.events("Preempted")) == 2)
    for event in admin.events("Preempted"):
        assert event["regarding"]["name"] in victims
        assert event["related"]["name"] == "high"
        assert event["note"] == f"Preempted by pod {left['high']['metadata']['uid']} on node {NODE}"
        assert (event["type"], event["action"]) == ("Normal", "Preempting")
    assert "nominatedNodeName" not in left["high"]["status"]
    assert not running.lines("policy ")


def test_a_victim_has_the_condition_disruption_target_and_the_preemptor_a_nomination(
    admin: Admin, scheduler: Callable[..., Scheduler]
) -> None:
    scheduler(profiles=[PROFILE]).wait_deciding()
    crowd(admin, terminationGracePeriodSeconds=30)  # longer than what is looked at meanwhile
    for name in admin.pods():  # a finalizer keeps the object after its containers have ended
        admin.patch(
            f"/api/v1/namespaces/{admin.namespace}/pods/{name}",
            {"metadata": {"finalizers": ["example.com/f"]}},
        )
    admin.create([on_the_node("high", "4", priorityClassName="urgent")])
    wait("all are terminating", lambda: len(terminating(admin)) == 4)
    pods = admin.pods()
    assert pods["high"]["status"]["nominatedNodeName"] == NODE
    for name in terminating(admin):
        (condition,) = [
            each for each in pods[name]["status"]["conditions"] if each["type"] == "DisruptionTarget"
        ]
        assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
        assert condition["message"] == "eclectus: preempting to accommodate a higher priority pod"
    for name in terminating(admin):
        admin.patch(f"/api/v1/namespaces/{admin.namespace}/pods/{name}", {"metadata": {"finalizers": None}})
    wait("the preemptor is bound", lambda: admin.bound().get("high") == NODE)


def test_a_scheduler_that_is_killed_between_nomination_and_eviction_has_evicted_nobody_in_vain(
    admin: Admin, scheduler: Callable[..., Scheduler]
) -> None:
    first = scheduler(profiles=[PROFILE]).wait_deciding()
    crowd(admin, terminationGracePeriodSeconds=4)
    uids = {each["metadata"]["uid"] for each in admin.pods().values()}
    admin.create([on_the_node("high", "2", priorityClassName="urgent")])
    wait("a nomination", lambda: admin.pods()["high"]["status"].get("nominatedNodeName"), every=0.01)
    first.kill()
    scheduler(profiles=[PROFILE], name="b").wait_deciding()
    wait("the preemptor is bound", lambda: admin.bound().get("high") == NODE)
    left = [each for each in admin.pods().values() if each["metadata"]["uid"] in uids]
    assert len([each for each in left if not each["metadata"].get("deletionTimestamp")]) == 2


def test_a_nomination_that_was_never_acted_on_is_taken_back_or_made_true(
    admin: Admin, scheduler: Callable[..., Scheduler]
) -> None:
    first = scheduler(profiles=[PROFILE]).wait_deciding()
    crowd(admin)
    first.kill()
    admin.create([on_the_node("high", "2", priorityClassName="urgent")])
    path = f"/api/v1/namespaces/{admin.namespace}/pods/high/status"
    admin.patch(path, {"status": {"nominatedNodeName": "n07"}})  # where it may not even run
    scheduler(profiles=[PROFILE], name="b").wait_deciding()
    wait("the preemptor is bound", lambda: admin.bound().get("high") == NODE)
    wait_until_left(admin, 3)


def test_a_pod_with_a_budget_is_spared(admin: Admin, scheduler: Callable[..., Scheduler]) -> None:
    first = scheduler(profiles=[PROFILE]).wait_deciding()
    crowd(admin)
    assert first.stop() == 0  # it gives the Lease back
    budgets = f"/apis/policy/v1/namespaces/{admin.namespace}/poddisruptionbudgets"
    spared = ["low-1", "low-3"]
    for name in spared:
        admin.patch(
            f"/api/v1/namespaces/{admin.namespace}/pods/{name}", {"metadata": {"labels": {"app": "web"}}}
        )
    selector = {"matchLabels": {"app": "web"}}
    admin.send(
        "POST", budgets, {"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": selector}}
    )
    wait("the budget has a status", lambda: admin.get(f"{budgets}/web")["status"].get("expectedPods") == 2)
    # One that starts now lists the budget; a watch of budgets may be behind that of pods.
    scheduler(profiles=[PROFILE], name="b").wait_deciding()
    admin.create([on_the_node("high", "2", priorityClassName="urgent")])
    wait("the preemptor is bound", lambda: admin.bound().get("high") == NODE)
    wait_until_left(admin, 3)
    assert sorted(admin.pods()) == ["high", *spared]


def test_policy_never_evicts_nobody(admin: Admin, scheduler: Callable[..., Scheduler]) -> None:
    scheduler(profiles=[PROFILE]).wait_deciding()
    crowd(admin)
    admin.create([on_the_node("high", "2", priorityClassName="patient")])
    wait("a condition", lambda: admin.condition("high").get("message"))
    assert admin.condition("high")["message"].endswith("not eligible due to preemptionPolicy=Never.")
    assert admin.phases()["Running"] == 4
