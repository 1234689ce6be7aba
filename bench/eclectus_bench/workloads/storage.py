"""Bound volumes of a CSI driver: one, with its claim, for each measured pod, and limits for each node.

No controller runs that would bind or protect them, so they are created as bound, and their finalizers are
removed before they are deleted.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from eclectus_bench.drain import UntilSettled
from eclectus_bench.load import DELETE_NOW, Object, node_name
from eclectus_bench.workloads.site import Run, Site

DRIVER = "csi.bench.example"
VOLUMES_ON_A_NODE = 39  # as in scheduler_perf's SchedulingCSIPVs
SIZE = "1Gi"
MODES = ["ReadWriteOnce"]
NODES_PATH = "/apis/storage.k8s.io/v1/csinodes"
VOLUMES_PATH = "/api/v1/persistentvolumes"


@asynccontextmanager
async def attach_limits(site: Site) -> AsyncIterator[None]:
    """A CSINode for each node, with the driver's limit."""
    nodes, load = [node_name(index) for index in range(site.sizes.nodes)], site.load
    site.say(f"creating {len(nodes)} CSINodes")
    await load.send("POST", [(NODES_PATH, _csi_node(each)) for each in nodes])
    try:
        yield
    finally:
        await load.send("DELETE", [(f"{NODES_PATH}/{each}", DELETE_NOW) for each in nodes])


@asynccontextmanager
async def bound_claims(run: Run) -> AsyncIterator[UntilSettled | None]:
    """A bound claim for each measured pod, with the pod's name, and its volume."""
    load, names, namespace = run.site.load, run.names, run.namespace
    claims_path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
    run.say(f"creating {len(names)} volumes and claims")
    await load.send("POST", [(VOLUMES_PATH, bound_volume(namespace, each)) for each in names])
    await load.send("POST", [(claims_path, _claim(namespace, each)) for each in names])
    try:
        yield None
    finally:
        await load.delete_protected([f"{claims_path}/{each}" for each in names])
        await load.delete_protected([f"{VOLUMES_PATH}/{_volume_name(namespace, each)}" for each in names])


def _volume_name(namespace: str, claim: str) -> str:
    return f"{namespace}-{claim}"


def _csi_node(node: str) -> Object:
    driver = {"name": DRIVER, "nodeID": node, "allocatable": {"count": VOLUMES_ON_A_NODE}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": [driver]},
    }


def bound_volume(namespace: str, claim: str, **spec: str) -> Object:
    """A volume of the driver that is reserved for this claim."""
    name = _volume_name(namespace, claim)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": SIZE},
            "accessModes": MODES,
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": namespace,
                "name": claim,
            },
            **spec,
        },
    }


def _claim(namespace: str, name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {
            "volumeName": _volume_name(namespace, name),
            "storageClassName": "",  # none: an absent one is the default class
            "accessModes": MODES,
            "resources": {"requests": {"storage": SIZE}},
        },
    }
