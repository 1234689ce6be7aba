"""A provisioner of volumes that takes long, its StorageClass, and claims that wait for their first pod."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from eclectus.kube.cluster_objects import SELECTED_NODE
from eclectus_bench.load import DELETE_NOW, Load, Object
from eclectus_bench.workloads.storage import MODES, SIZE, VOLUMES_PATH, bound_volume

CLASS, CLASSES_PATH = "bench-slow", "/apis/storage.k8s.io/v1/storageclasses"


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    annotations: dict[str, str] = {}


class _Claim(msgspec.Struct, frozen=True):
    metadata: _Metadata


class Provisioner:
    """Makes a volume for each claim of a namespace, some seconds after a node was written on it."""

    def __init__(self, load: Load, namespace: str, seconds: float) -> None:
        self._load, self._namespace, self._seconds = load, namespace, seconds
        self.chosen: set[str] = set()  # claims with a node
        self.volumes: list[str] = []

    async def run(self) -> None:
        """Watch until cancelled. Raises an ExceptionGroup with the ApiError of a request that is refused."""
        async with asyncio.TaskGroup() as group:
            async for change in self._load.api.changes(claims_path(self._namespace), _Claim):
                for each in change.items if change.kind != "deleted" else ():
                    if SELECTED_NODE in each.metadata.annotations and each.metadata.name not in self.chosen:
                        self.chosen.add(each.metadata.name)
                        group.create_task(self._provision(each.metadata.name))

    async def _provision(self, claim: str) -> None:
        await asyncio.sleep(self._seconds)
        volume = bound_volume(self._namespace, claim, storageClassName=CLASS)
        name = volume["metadata"]["name"]
        await self._load.send("POST", [(VOLUMES_PATH, volume)])
        self.volumes.append(name)
        is_bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        patch = {"metadata": is_bound, "spec": {"volumeName": name}}
        await self._load.send("PATCH", [(f"{claims_path(self._namespace)}/{claim}", patch)])


@asynccontextmanager
async def slow_class(load: Load) -> AsyncIterator[None]:
    """The StorageClass of the claims, whose provisioner is played here."""
    body = {"metadata": {"name": CLASS}, "provisioner": "bench.example/slow"}
    await load.send("POST", [(CLASSES_PATH, body | {"volumeBindingMode": "WaitForFirstConsumer"})])
    try:
        yield
    finally:
        await load.send("DELETE", [(f"{CLASSES_PATH}/{CLASS}", DELETE_NOW)])


def late_claim(name: str) -> Object:
    """A claim of the class, which waits for its first pod."""
    requests = {"requests": {"storage": SIZE}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"storageClassName": CLASS, "accessModes": MODES, "resources": requests},
    }


def claims_path(namespace: str) -> str:
    """The claims of a namespace."""
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
