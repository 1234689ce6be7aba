"""Volumes on a real API server, whose controllers bind claims: bound, free, provisioned and missing ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from live_cluster import Admin, pod, wait

pytestmark = pytest.mark.live

NODES = "/api/v1/nodes"
STORAGE = "/apis/storage.k8s.io/v1"
VOLUMES, CLASSES, DRIVERS = "/api/v1/persistentvolumes", f"{STORAGE}/storageclasses", f"{STORAGE}/csidrivers"
CSI_NODES, ATTACHMENTS = f"{STORAGE}/csinodes", f"{STORAGE}/volumeattachments"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONER = "fake.example.com"
DISK_LABEL = "example.com/disk"  # of the nodes with volumes: their own names


def claims_of(admin: Admin) -> str:
    return f"/api/v1/namespaces/{admin.namespace}/persistentvolumeclaims"


def with_claim(name: str, claim: str) -> Any:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    return pod(name, volumes=[volume])


def claim(name: str, storage_class: str) -> Any:
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def volume(name: str, storage_class: str, node: str, **spec: Any) -> Any:
    of_node = {"key": DISK_LABEL, "operator": "In", "values": [node]}
    return {
        "metadata": {"name": name},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "2Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [of_node]}]}},
            **spec,
        },
    }


@pytest.fixture
def storage(admin: Admin) -> Iterator[str]:
    """A prefix for names of cluster-wide objects; those that begin with it are deleted at the end.

    Meanwhile all nodes have the label that volumes select.
    """
    prefix, nodes = "vol-", [each["metadata"]["name"] for each in admin.send("GET", NODES)["items"]]
    for name in nodes:
        admin.patch(f"{NODES}/{name}", {"metadata": {"labels": {DISK_LABEL: name}}})
    yield prefix
    for name in nodes:
        admin.patch(f"{NODES}/{name}", {"metadata": {"labels": {DISK_LABEL: None}}})
    for path in (VOLUMES, CLASSES, DRIVERS):
        for each in admin.send("GET", path)["items"]:
            if each["metadata"]["name"].startswith(prefix):
                admin.send("DELETE", f"{path}/{each['metadata']['name']}")


def make_class(admin: Admin, name: str, provisioner: str, mode: str) -> None:
    body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
    admin.send("POST", CLASSES, body)


@contextmanager
def provisioner(kubeconfig: Path, namespace: str, prefix: str) -> Iterator[None]:
    """Makes a volume at the selected node for each claim that has one, as an external provisioner does."""
    stopping = threading.Event()

    def work() -> None:
        made = set()
        with Admin(kubeconfig, f"{namespace}-provisioner") as own:
            while not stopping.wait(0.1):
                path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
                for each in own.send("GET", path)["items"]:
                    meta = each["metadata"]
                    node = meta.get("annotations", {}).get(SELECTED_NODE)
                    if node and meta["name"] not in made:
                        made.add(meta["name"])
                        reference = {"namespace": namespace, "name": meta["name"], "uid": meta["uid"]}
                        fields = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference}
                        made_for = f"{prefix}made-for-{meta['name']}"
                        own.send("POST", VOLUMES, volume(made_for, f"{prefix}late", node, claimRef=fields))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(30)


def test_pods_go_where_their_volumes_are_or_can_be(control_plane, admin, scheduler, storage):
    make_class(admin, f"{storage}now", "kubernetes.io/no-provisioner", "Immediate")
    make_class(admin, f"{storage}local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer")
    make_class(admin, f"{storage}late", PROVISIONER, "WaitForFirstConsumer")
    admin.send("POST", VOLUMES, volume(f"{storage}bound", f"{storage}now", "n03"))
    admin.send("POST", VOLUMES, volume(f"{storage}free", f"{storage}local", "n07"))
    for name, storage_class in (
        ("bound", "now"),
        ("static", "local"),
        ("dynamic", "late"),
        ("none", "local"),
    ):
        admin.send("POST", claims_of(admin), claim(name, f"{storage}{storage_class}"))
    scheduler().wait_deciding()
    with provisioner(control_plane.kubeconfig, admin.namespace, storage):
        # 1. A bound volume, a free one, and one that is made for the node of the pod.
        admin.create([with_claim(name, name) for name in ("bound", "static", "dynamic")])
        wait("all three are bound", lambda: len(admin.bound()) == 3)
        found = admin.bound()
        assert (found["bound"], found["static"]) == ("n03", "n07")
        path = f"{claims_of(admin)}/dynamic"
        made = admin.send("GET", path)
        assert made["metadata"]["annotations"][SELECTED_NODE] == found["dynamic"]
        assert made["status"]["phase"] == "Bound"
    # 2. A claim that is missing, and one for which there is no volume any more.
    admin.create([with_claim("missing", "later"), with_claim("empty", "none")])
    wait("both have a condition", lambda: admin.condition("missing") and admin.condition("empty"))
    assert 'persistentvolumeclaim "later" not found' in admin.condition("missing")["message"]
    unbound = "12 node(s) didn't find available persistent volumes to bind"
    assert unbound in admin.condition("empty")["message"]
    # 3. Both are placed when what they miss is there.
    admin.send("POST", VOLUMES, volume(f"{storage}more", f"{storage}local", "n05"))
    wait("the free volume is used", lambda: admin.bound().get("empty") == "n05")
    admin.send("POST", VOLUMES, volume(f"{storage}again", f"{storage}now", "n04"))
    admin.send("POST", claims_of(admin), claim("later", f"{storage}now"))
    wait("the claim is used", lambda: admin.bound().get("missing") == "n04")


def test_a_volume_that_is_attached_counts_until_it_is_detached(admin, scheduler, storage):
    driver, attachment = f"{storage}driver", f"{storage}attachment"
    make_class(admin, f"{storage}csi", "kubernetes.io/no-provisioner", "Immediate")
    for name in ("old", "new"):
        csi = {"local": None, "nodeAffinity": None, "csi": {"driver": driver, "volumeHandle": name}}
        reference = {"claimRef": {"namespace": admin.namespace, "name": name}}
        admin.send("POST", VOLUMES, volume(f"{storage}{name}", f"{storage}csi", "", **csi, **reference))
        admin.send("POST", claims_of(admin), claim(name, f"{storage}csi"))
    for name in (each["metadata"]["name"] for each in admin.send("GET", NODES)["items"]):
        drivers = [{"name": driver, "nodeID": name, "allocatable": {"count": int(name == "n02")}}]
        admin.send("POST", CSI_NODES, {"metadata": {"name": name}, "spec": {"drivers": drivers}})
    source = {"persistentVolumeName": f"{storage}old"}
    spec = {"attacher": driver, "nodeName": "n02", "source": source}
    admin.send("POST", ATTACHMENTS, {"metadata": {"name": attachment}, "spec": spec})
    try:
        scheduler().wait_deciding()
        # 1. No pod uses the volume on n02, and no other volume has room beside it.
        admin.create([with_claim("wants-to-attach", "new")])
        full = "12 node(s) exceed max volume count"
        wait("it is refused", lambda: full in (admin.condition("wants-to-attach") or {}).get("message", ""))
        # 2. Then it is detached.
        admin.send("DELETE", f"{ATTACHMENTS}/{attachment}")
        wait("the pod is bound", lambda: admin.bound().get("wants-to-attach") == "n02")
    finally:
        admin.send("DELETE", CSI_NODES)
        admin.send("DELETE", ATTACHMENTS)


def test_a_node_gets_a_pod_when_the_driver_that_must_be_there_is(admin, scheduler, storage):
    driver = f"{storage}needed"
    spec = {"attachRequired": False, "preventPodSchedulingIfMissing": True}
    created = admin.send("POST", DRIVERS, {"metadata": {"name": driver}, "spec": spec})
    if "preventPodSchedulingIfMissing" not in created["spec"]:
        pytest.skip("this cluster has not the feature gate VolumeLimitScaling")
    make_class(admin, f"{storage}needs", driver, "WaitForFirstConsumer")
    admin.send("POST", claims_of(admin), claim("needs", f"{storage}needs"))
    scheduler().wait_deciding()
    admin.create([with_claim("needs-driver", "needs")])
    missing = f"12 {driver} CSI driver is not installed on the node"
    wait("it is refused", lambda: missing in (admin.condition("needs-driver") or {}).get("message", ""))
    spec = {"drivers": [{"name": driver, "nodeID": "n04"}]}
    admin.send("POST", CSI_NODES, {"metadata": {"name": "n04"}, "spec": spec})
    try:
        path = f"{claims_of(admin)}/needs"
        wait(
            "n04 is chosen",
            lambda: admin.send("GET", path)["metadata"].get("annotations", {}).get(SELECTED_NODE) == "n04",
        )
    finally:
        admin.send("DELETE", CSI_NODES)


def test_volumes_are_made_where_storage_is_free(control_plane, admin, scheduler, storage):
    driver = f"{storage}driver"
    publishes = {"attachRequired": False, "podInfoOnMount": False, "storageCapacity": True}
    admin.send("POST", DRIVERS, {"metadata": {"name": driver}, "spec": publishes})
    make_class(admin, f"{storage}late", driver, "WaitForFirstConsumer")
    free = f"{STORAGE}/namespaces/{admin.namespace}/csistoragecapacities"
    on_n06 = {"storageClassName": f"{storage}late", "nodeTopology": {"matchLabels": {DISK_LABEL: "n06"}}}
    admin.send("POST", free, {"metadata": {"name": "n06"}, "capacity": "512Mi", **on_n06})
    admin.send("POST", claims_of(admin), claim("capacity", f"{storage}late"))
    scheduler().wait_deciding()
    # 1. Nowhere is enough.
    admin.create([with_claim("wants-storage", "capacity")])
    wait("it has a condition", lambda: admin.condition("wants-storage"))
    short = "12 node(s) did not have enough free storage"
    assert short in admin.condition("wants-storage")["message"]
    # 2. Then there is on one node.
    with provisioner(control_plane.kubeconfig, admin.namespace, storage):
        admin.patch(f"{free}/n06", {"capacity": "2Gi"})
        wait("the pod is bound", lambda: admin.bound().get("wants-storage") == "n06")
