"""Pods of a ReplicaSet and of a Service, without constraints of their own, on a real API server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from eclectus.feasibility.scores_by_pods import HOSTNAME
from eclectus.framework.profile_settings import ZONE
from live_cluster import Admin, pod, wait

pytestmark = pytest.mark.live

NODES = "/api/v1/nodes"
PODS = 6  # of each: three in each of two zones, each on a node of its own
PACKED = [{"schedulerName": "eclectus", "place": {"policy": "most-allocated"}}]


@pytest.fixture
def zones(admin: Admin) -> Iterator[dict[str, str]]:
    """Node -> zone `a` or `b`: meanwhile all nodes have the labels of default constraints."""
    names = [each["metadata"]["name"] for each in admin.send("GET", NODES)["items"]]
    found = {name: "ab"[at % 2] for at, name in enumerate(sorted(names))}
    for name, zone in found.items():
        admin.patch(f"{NODES}/{name}", {"metadata": {"labels": {ZONE: zone, HOSTNAME: name}}})
    yield found
    admin.send("DELETE", sets_of(admin))  # or they would make their pods again
    for name in found:
        admin.patch(f"{NODES}/{name}", {"metadata": {"labels": {ZONE: None}}})


def sets_of(admin: Admin) -> str:
    return f"/apis/apps/v1/namespaces/{admin.namespace}/replicasets"


def replica_set(name: str) -> Any:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {**pod("")["spec"], "restartPolicy": "Always"}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template},
    }


def test_pods_of_a_replica_set_and_of_a_service_are_spread(admin, scheduler, zones):
    admin.send("POST", sets_of(admin), replica_set("set"))
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    admin.send("POST", f"/api/v1/namespaces/{admin.namespace}/services", service)
    pods = [pod(f"web-{at}", work=3600) for at in range(PODS)]
    for each in pods:
        each["metadata"]["labels"] = {"app": "web"}
    admin.create(pods)
    wait("the ReplicaSet has its pods", lambda: len(admin.pods()) == 2 * PODS)
    scheduler(profiles=PACKED).wait_deciding()
    wait("all pods are bound", lambda: len(admin.bound()) == 2 * PODS)
    for prefix in ("set-", "web-"):
        nodes = [node for name, node in admin.bound().items() if name.startswith(prefix)]
        assert Counter(zones[node] for node in nodes) == {"a": PODS // 2, "b": PODS // 2}
        assert len(set(nodes)) == PODS
