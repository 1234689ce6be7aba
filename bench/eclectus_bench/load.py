"""The load: nodes and pods created, streamed and deleted, and the binds as a watch shows them."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

import msgspec

from eclectus_bench.objects import node, pod
from eclectus_e2e.errors import StartError
from eclectus_e2e.testbed.kubelet.api import Api
from eclectus_e2e.testbed.launch import process_identity

IN_FLIGHT = 64  # requests at once: saturates a 2-core API server without queueing there for seconds
STALL_SECONDS = 60.0  # no bind for so long: the scheduler does not work
_POLL_SECONDS = 0.1


class _Name(msgspec.Struct, frozen=True):
    name: str


class _Named(msgspec.Struct, frozen=True):
    metadata: _Name


class _Remaining(msgspec.Struct, frozen=True, rename="camel"):
    remaining_item_count: int = 0


class _Counted(msgspec.Struct, frozen=True):
    metadata: _Remaining
    items: list[msgspec.Raw]


class Binds:
    """When each pod of a namespace was seen bound, on the clock of `time.monotonic`, in order."""

    def __init__(self) -> None:
        self.seen_at: dict[str, float] = {}
        self.first = asyncio.Event()

    async def follow(self, api: Api, namespace: str) -> None:
        """Watch for ever. Only pods with a node are shown, so a pod costs one short look."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        async for change in api.changes(path, _Named, "fieldSelector=spec.nodeName!="):
            now = time.monotonic()
            for bound in change.items if change.kind != "deleted" else ():
                self.seen_at.setdefault(bound.metadata.name, now)
                self.first.set()

    async def wait_for(self, count: int, pid: int, say: Callable[[str], None]) -> None:
        """Wait until so many pods are bound. Raises StartError when the scheduler is dead or stands still."""
        before, moved_at = -1, time.monotonic()
        while (bound := len(self.seen_at)) < count:
            say(f"{bound} of {count} pods bound")
            if bound > before:
                before, moved_at = bound, time.monotonic()
            elif process_identity(pid) is None:
                raise StartError(f"the scheduler has ended with {bound} of {count} pods bound")
            elif time.monotonic() - moved_at > STALL_SECONDS:
                raise StartError(f"{bound} of {count} pods are bound, and none for {STALL_SECONDS:.0f} s")
            await asyncio.sleep(_POLL_SECONDS)


class Load:
    """Everything that is asked of the API server on behalf of users."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def create_nodes(self, count: int) -> None:
        """Ready nodes, empty."""
        await self._all("POST", [("/api/v1/nodes", node(index)) for index in range(count)])

    @asynccontextmanager
    async def namespace(self, name: str) -> AsyncIterator[Binds]:
        """A namespace of one run, its binds watched; its pods are gone afterwards."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self._api.request("POST", "/api/v1/namespaces", body)
        # Until the controller has made it, the API server refuses every pod of the namespace.
        await self._until(f"/api/v1/namespaces/{name}/serviceaccounts", lambda count: count > 0)
        binds = Binds()
        watch = asyncio.create_task(binds.follow(self._api, name))
        try:
            yield binds
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            await self._delete_pods(name)

    async def create_pods(self, namespace: str, scheduler: str, names: Iterable[str]) -> None:
        """A backlog, as fast as the API server takes it."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        await self._all("POST", [(path, pod(name, scheduler)) for name in names])

    async def stream(
        self, namespace: str, scheduler: str, rate: float, seconds: float, seed: int
    ) -> dict[str, float]:
        """An open Poisson stream of `rate` pods a second; when each was sent."""
        chance, path = random.Random(seed), f"/api/v1/namespaces/{namespace}/pods"
        began, due = time.monotonic(), 0.0
        sent_at: dict[str, float] = {}
        async with asyncio.TaskGroup() as group:
            while (due := due + chance.expovariate(rate)) < seconds:
                await asyncio.sleep(began + due - time.monotonic())
                name = f"stream-{len(sent_at):06}"
                sent_at[name] = time.monotonic()
                group.create_task(self._api.request("POST", path, pod(name, scheduler)))
        return sent_at

    async def events(self, namespace: str) -> int:
        """How many events stand in a namespace: those of the pods, since there is nothing else."""
        return await self._count(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")

    async def _count(self, path: str) -> int:
        answer = msgspec.json.decode(await self._api.request("GET", f"{path}?limit=1"), type=_Counted)
        return len(answer.items) + answer.metadata.remaining_item_count

    async def _delete_pods(self, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods"
        listed = msgspec.json.decode(await self._api.request("GET", path), type=_Pods)
        await self._all("DELETE", [(f"{path}/{each.metadata.name}", _AT_ONCE) for each in listed.items])
        await self._until(path, lambda count: count == 0)

    async def _until(self, path: str, enough: Callable[[int], bool]) -> None:
        while not enough(await self._count(path)):  # noqa: ASYNC110 — it happens in another process
            await asyncio.sleep(_POLL_SECONDS)

    async def _all(self, method: str, requests: list[tuple[str, object]]) -> None:
        """Send every request, IN_FLIGHT at a time."""
        waiting = iter(requests)

        async def work() -> None:
            for path, body in waiting:
                await self._api.request(method, path, body)

        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT):
                group.create_task(work())


class _Pods(msgspec.Struct, frozen=True):
    items: list[_Named]


_AT_ONCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
