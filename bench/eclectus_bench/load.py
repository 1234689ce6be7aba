"""The load on the API server: nodes and pods that are created and deleted, and the binds that a watch shows.

Sizes are those of kube-scheduler's own benchmark (node-default and pod-default of scheduler_perf): 4 cores,
32 GiB and 110 pods on a node; 100m and 500Mi for a pod.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from eclectus_e2e.errors import ApiError, StartError
from eclectus_e2e.testbed.kubelet.api import MERGE, Api
from eclectus_e2e.testbed.launch import process_identity

Object = dict[str, Any]
ZONES = ("zone-a", "zone-b", "zone-c")
IN_FLIGHT = 64  # requests at once: saturates a 2-core API server without queueing there for seconds
SERVED_SECONDS, TOO_MANY_REQUESTS = 60.0, 429
STALL_SECONDS = 60.0  # without a bind for so long, the scheduler counts as failed
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


class _Pods(msgspec.Struct, frozen=True):
    items: list[_Named]


DELETE_NOW = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}


class Binds:
    """When each pod of a namespace was seen bound, in seconds of `time.monotonic`."""

    def __init__(self) -> None:
        self.seen_at: dict[str, float] = {}
        self.first = asyncio.Event()

    async def follow(self, api: Api, namespace: str) -> None:
        """Watch until cancelled. Only pods with a node are selected, so there is one event a pod."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        async for change in api.changes(path, _Named, "fieldSelector=spec.nodeName!="):
            now = time.monotonic()
            for bound in change.items if change.kind != "deleted" else ():
                self.seen_at.setdefault(bound.metadata.name, now)
                self.first.set()

    async def wait_for(
        self, count: int, pid: int, say: Callable[[str], None], stall_seconds: float = STALL_SECONDS
    ) -> None:
        """Wait until so many pods are bound. Raises StartError when the scheduler ends or stops binding."""
        await reach(count, lambda: len(self.seen_at), "bound", pid, say, stall_seconds=stall_seconds)


async def reach(
    count: int,
    reached: Callable[[], int],
    what: str,
    pid: int,
    say: Callable[[str], None],
    *,
    stall_seconds: float = STALL_SECONDS,
) -> None:
    """Wait until the scheduler `pid` has done `what` to so many pods: `reached` gives their number now.

    Raises StartError when it has ended, or has done it to none for `stall_seconds`.
    """
    before, moved_at = -1, time.monotonic()
    while (now := reached()) < count:
        say(f"{now} of {count} pods {what}")
        if now > before:
            before, moved_at = now, time.monotonic()
        elif process_identity(pid) is None:
            raise StartError(f"the scheduler has ended with {now} of {count} pods {what}")
        elif time.monotonic() - moved_at > stall_seconds:
            raise StartError(f"{now} of {count} pods are {what}, and no more for {stall_seconds:.0f} s")
        await asyncio.sleep(_POLL_SECONDS)


class Load:
    """The requests of users to the API server."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def send(self, method: str, requests: Iterable[tuple[str, object]]) -> None:
        """Send every request, (path, body), IN_FLIGHT at a time; PATCH with merge patches.

        Raises an ExceptionGroup with the ApiError of one that is rejected.
        """
        waiting, kind = iter(requests), MERGE if method == "PATCH" else "application/json"

        async def work() -> None:
            for path, body in waiting:
                await self.api.request(method, path, body, kind)

        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT):
                group.create_task(work())

    async def delete_protected(self, paths: Sequence[str]) -> None:
        """Delete objects with finalizers, where no controller runs that would remove these."""
        await self.send("PATCH", [(path, {"metadata": {"finalizers": None}}) for path in paths])
        await self.send("DELETE", [(path, DELETE_NOW) for path in paths])

    async def create_nodes(self, count: int) -> None:
        """Create empty Ready nodes."""
        await self.send("POST", [("/api/v1/nodes", node(index)) for index in range(count)])

    async def create_namespace(self, name: str) -> None:
        """A namespace; it takes pods when this returns."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await self.api.request("POST", "/api/v1/namespaces", body)
        # Until the ServiceAccount exists, the API server refuses every pod of the namespace.
        await self._until(f"/api/v1/namespaces/{name}/serviceaccounts", lambda count: count > 0)

    async def until_served(self, path: str) -> None:
        """Wait until the API server has read the objects of a new kind; until then it answers 429."""
        deadline = time.monotonic() + SERVED_SECONDS
        while True:
            try:
                await self.api.request("GET", f"{path}?limit=1")
                return
            except ApiError as error:
                if error.status != TOO_MANY_REQUESTS or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(_POLL_SECONDS)

    @asynccontextmanager
    async def namespace(self, name: str) -> AsyncIterator[Binds]:
        """A namespace whose binds are watched, for one run; its pods are deleted afterwards."""
        await self.create_namespace(name)
        binds = Binds()
        watch = asyncio.create_task(binds.follow(self.api, name))
        try:
            yield binds
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            await self._delete_pods(name)

    async def create_pods(self, namespace: str, pods: Iterable[Object]) -> None:
        """Create a backlog as fast as the API server allows."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        await self.send("POST", ((path, each) for each in pods))

    async def create_priority_class(self, name: str, value: int) -> None:
        """A PriorityClass."""
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        await self.api.request("POST", path, {"metadata": {"name": name}, "value": value})

    async def pods(self, namespace: str) -> int:
        """The number of pods in a namespace."""
        return await self._count(f"/api/v1/namespaces/{namespace}/pods")

    async def stream(
        self, namespace: str, scheduler: str, rate: float, seconds: float, seed: int
    ) -> dict[str, float]:
        """Create a Poisson stream of `rate` pods a second; returns when each was sent."""
        gaps, path = random.Random(seed), f"/api/v1/namespaces/{namespace}/pods"
        began, due = time.monotonic(), 0.0
        sent_at: dict[str, float] = {}
        async with asyncio.TaskGroup() as group:
            while (due := due + gaps.expovariate(rate)) < seconds:
                await asyncio.sleep(began + due - time.monotonic())
                name = f"stream-{len(sent_at):06}"
                sent_at[name] = time.monotonic()
                group.create_task(self.api.request("POST", path, pod(name, scheduler)))
        return sent_at

    async def events(self, namespace: str) -> int:
        """The number of events in a namespace; all are of its pods, because it has nothing else."""
        return await self._count(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")

    async def _count(self, path: str) -> int:
        answer = msgspec.json.decode(await self.api.request("GET", f"{path}?limit=1"), type=_Counted)
        return len(answer.items) + answer.metadata.remaining_item_count

    async def _delete_pods(self, namespace: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods"
        listed = msgspec.json.decode(await self.api.request("GET", path), type=_Pods)
        await self.send("DELETE", [(f"{path}/{each.metadata.name}", DELETE_NOW) for each in listed.items])
        await self._until(path, lambda count: count == 0)

    async def _until(self, path: str, enough: Callable[[int], bool]) -> None:
        while not enough(await self._count(path)):  # noqa: ASYNC110 — it happens in another process
            await asyncio.sleep(_POLL_SECONDS)


def node_name(index: int) -> str:
    """The name of a node."""
    return f"bench-{index:05}"


def node(index: int) -> Object:
    """A Ready node, created with its status."""
    name = node_name(index)
    amounts = {"cpu": "4", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": ZONES[index % len(ZONES)],
    }
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def pod(name: str, scheduler: str, cpu: str = "100m", **spec: str) -> Object:
    """A pod with requests for CPU and memory only."""
    requests = {"cpu": cpu, "memory": "500Mi"}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "bench"}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }
