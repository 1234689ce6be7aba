"""PodGroups on a real API server, of Kubernetes and of the coscheduling plug-in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from eclectus_e2e.testbed.controlplane.components import POD_GROUPS_VERSION
from live_cluster import Admin, pod, wait
from pod_groups import DEFINITION, coscheduling_pod_group, labelled, pod_group

pytestmark = pytest.mark.live

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIX_NODES = {"half": "a"}  # of 4 cores each


@pytest.fixture
def coscheduling(admin: Admin) -> Iterator[str]:
    """Where PodGroups of the coscheduling plug-in are created."""
    admin.send("POST", DEFINITIONS, DEFINITION)
    version = "/apis/scheduling.x-k8s.io/v1alpha1"
    wait("the PodGroups are served", lambda: admin.get(f"{version}/podgroups") is not None)
    yield f"{version}/namespaces/{admin.namespace}/podgroups"
    admin.send("DELETE", f"{DEFINITIONS}/{DEFINITION['metadata']['name']}")


@pytest.fixture
def own(admin: Admin) -> str:
    """Where PodGroups of Kubernetes are created."""
    version = f"/apis/{POD_GROUPS_VERSION}"
    if admin.get(f"{version}/podgroups") is None:
        pytest.skip("this cluster does not serve PodGroups")
    return f"{version}/namespaces/{admin.namespace}/podgroups"


def test_pods_of_kubernetes_pod_groups_wait_for_their_quorum(admin: Admin, scheduler, own: str) -> None:
    scheduler().wait_deciding()
    group = {"schedulingGroup": {"podGroupName": "train"}}
    # 1. There is no such group yet.
    admin.create([pod(f"p{at}", work=600, **group) for at in range(2)])
    wait("a pod says what it waits for", lambda: "does not exist" in message(admin, "p0"))
    assert admin.condition("p0")["reason"] == "WaitingForGang"
    # 2. There is, and a pod is missing; then it comes.
    admin.send("POST", own, pod_group("train", 3))
    wait("the message follows", lambda: "has 2 of the 3 pods" in message(admin, "p0"))
    assert admin.bound() == {}
    admin.create([pod("p2", work=600, **group)])
    wait("all are bound", lambda: len(admin.bound()) == 3)


def test_of_two_groups_that_fit_only_alone_one_starts_whole(
    admin: Admin, scheduler, coscheduling: str
) -> None:
    scheduler().wait_deciding()
    for name in ("a", "b"):
        admin.send("POST", coscheduling, coscheduling_pod_group(name, 8))
    # 1. Eight pods of 2 cores each: the six nodes have room for twelve.
    admin.create(
        labelled(pod(f"{name}{at}", cpu="2", work=600, nodeSelector=SIX_NODES), name)
        for at in range(8)
        for name in ("a", "b")
    )
    wait("one group is bound", lambda: len(admin.bound()) == 8)
    (started,) = {name[0] for name in admin.bound()}
    waiting = "b" if started == "a" else "a"
    wait("the other says what it lacks", lambda: "room for 4 of the 8 pods" in message(admin, f"{waiting}7"))
    assert admin.condition(f"{waiting}7")["reason"] == "Unschedulable"
    assert len(admin.bound()) == 8
    # 2. A pod of it is deleted: it cannot start, even with room. With another one it can.
    path = f"/api/v1/namespaces/{admin.namespace}/pods"
    admin.send("DELETE", f"{path}/{waiting}0", query={"gracePeriodSeconds": "0"})
    for at in range(8):
        admin.send("DELETE", f"{path}/{started}{at}", query={"gracePeriodSeconds": "0"})
    wait("the message follows", lambda: "has 7 of the 8 pods" in message(admin, f"{waiting}7"))
    assert admin.bound() == {}
    admin.create([labelled(pod(f"{waiting}8", cpu="2", work=600, nodeSelector=SIX_NODES), waiting)])
    wait("it starts", lambda: len(admin.bound()) == 8)


def message(admin: Admin, name: str) -> str:
    return str(admin.condition(name).get("message", ""))
