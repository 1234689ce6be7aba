"""A cluster made equal to given objects: only what differs from the last ones is written."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

import msgspec

from eclectus_e2e.errors import ApiError
from eclectus_e2e.testbed.kubelet.api import MERGE, Api

Object = dict[str, Any]
DELETE_NOW = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
_IN_FLIGHT = 16  # requests at once
_NOT_FOUND = 404


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"


class _Item(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _List(msgspec.Struct, frozen=True):
    items: tuple[_Item, ...]


class ClusterObjects:
    """The objects that exist, by their paths; neither pods that are asked about nor those of the set-up."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._there: dict[str, Object] = {}
        self._in_flight = asyncio.Semaphore(_IN_FLIGHT)
        self._restoring = asyncio.Lock()
        self._healthy = 0  # of budgets, another number each time, because an equal status is not written

    async def become(self, wanted: Mapping[str, Object]) -> None:
        """Delete, create and change objects until these are there.

        Raises ApiError for an object that the API server refuses; the others are there then. Nodes are
        changed in place, everything else is created anew.
        """
        gone = [path for path, each in self._there.items() if wanted.get(path) != each]
        kept_nodes = {path for path in gone if path in wanted and _is_node(path)}
        deleted = [path for path in gone if path not in kept_nodes]
        await self._all(self._delete(path) for path in deleted if _is_pod(path))
        await self._all(self._delete(path) for path in deleted if not _is_pod(path))
        new = [path for path in wanted if path not in self._there]
        await self._all(self._replace(path, wanted[path]) for path in kept_nodes)
        await self._all(self._create(path, wanted[path]) for path in new if not _is_pod(path))
        await self._all(self._create(path, wanted[path]) for path in new if _is_pod(path))

    async def restored(self) -> frozenset[str]:
        """The paths of the pods that schedulers have evicted since; they are there again.

        The budgets' controller does not run: the status of each is written as after such a change.
        """
        async with self._restoring:
            listed = msgspec.json.decode(await self._api.request("GET", "/api/v1/pods"), type=_List)
            evicted = self._pods - {each.metadata.path for each in listed.items}
            await self._all(self._create(path, self._there[path]) for path in evicted)
            if evicted:
                await self._all(self._count_again(path) for path in self._there if _is_budget(path))
            return evicted

    async def _count_again(self, budget: str) -> None:
        self._healthy += 1
        status = {"status": {"currentHealthy": self._healthy}}
        await self._api.request("PATCH", f"{budget}/status", status, MERGE)

    @property
    def _pods(self) -> frozenset[str]:
        return frozenset(filter(_is_pod, self._there))

    async def _create(self, path: str, body: Object) -> None:
        await self._api.request("POST", path.rpartition("/")[0], body)
        self._there[path] = body
        if "status" in body and not _is_node(path):  # of a node it is taken from the first request
            await self._api.request("PATCH", f"{path}/status", {"status": body["status"]}, MERGE)
        if "deletionTimestamp" in body["metadata"]:
            await self._api.request("DELETE", path)

    async def _replace(self, path: str, node: Object) -> None:
        await self._api.request("PUT", path, node)
        await self._api.request("PUT", f"{path}/status", node)
        self._there[path] = node

    async def _delete(self, path: str) -> None:
        del self._there[path]
        if "/persistentvolume" in path:  # the controllers that remove the finalizers do not run
            await self._api.request("PATCH", path, {"metadata": {"finalizers": None}}, MERGE)
        try:
            await self._api.request("DELETE", path, DELETE_NOW)
        except ApiError as error:
            if error.status != _NOT_FOUND:  # it was being deleted and had only its finalizers left
                raise

    async def _all(self, requests: Iterable[Coroutine[Any, Any, None]]) -> None:
        async def limited(request: Coroutine[Any, Any, None]) -> None:
            async with self._in_flight:
                await request

        results = await asyncio.gather(*map(limited, requests), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result


def _is_pod(path: str) -> bool:
    return "/pods/" in path


def _is_budget(path: str) -> bool:
    return "/poddisruptionbudgets/" in path


def _is_node(path: str) -> bool:
    return path.startswith("/api/v1/nodes/")
