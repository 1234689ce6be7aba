"""Replicas of the operator: its real program, but for kopf and its threads.

kopf lists and watches some kinds of objects, and calls a handler with each object; that is played here: its
watches open connections of their own, and its operator waits in threads, which have no virtual time. What is
real: the election, the loop that syncs on events and after a while, both controllers, and their requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import kopf
from msgspec.json import decode
from typing_extensions import override

from eclectus.api.names import GROUP, VERSION
from eclectus.kubeclient.api_errors import ApiError, UnsureError
from eclectus.kubeclient.client import ApiClient, ObjectApi
from eclectus_e2e.chaos.network import Network, SimulatedClient
from eclectus_e2e.chaos.replicas import Replica
from eclectus_e2e.chaos.virtual_time import PROCESS, Process
from eclectus_operator import program
from eclectus_operator.program import SILENT_SECONDS, WATCH_SECONDS, SyncLoop
from eclectus_operator.settings import LeaseSettings, ServerSettings, Settings

LEASE_SETTINGS = LeaseSettings(
    "eclectus-system", "eclectus-operator", lease_duration=9.0, renew_deadline=4.5, retry_period=1.0
)
RETRY_SECONDS = 1.0  # until a watch that has failed lists again
LIST_SECONDS = 60.0  # time limit of a list
Handler = Callable[..., Awaitable[None]]


@dataclass(eq=False)
class Operator(Replica):
    """One operator."""

    settings: Settings = field(kw_only=True)

    write_paths: ClassVar[tuple[str, ...]] = ("/status", "/pods")

    @override
    async def _serve(self) -> None:
        await program.run(self.settings, LEASE_SETTINGS, ServerSettings())


class _SimulatedLoop(SyncLoop):
    """As the real one, with the lists and watches that kopf would have."""

    def __init__(self, network: Network, *given: Any) -> None:
        super().__init__(*given)
        self._network = network
        self._stopped = asyncio.Event()

    @override
    def start(self) -> None:
        self._running = asyncio.get_running_loop().create_task(self._play())

    @override
    def stop(self) -> None:
        if hasattr(self, "_running"):
            self._running.cancel()

    @override
    def _fail(self, error: BaseException) -> None:
        super()._fail(error)
        self._stopped.set()
        _process().failures.append(error)

    async def _play(self) -> None:
        await self._start(kopf.OperatorSettings())
        kind = self._kind
        namespaces = kind.where.get("namespaces")
        pods = [f"/api/v1/namespaces/{each}/pods" for each in namespaces or ()] or ["/api/v1/pods"]
        watched = [(f"/apis/{GROUP}/{VERSION}/{kind.plural}", "", self._on_object)] if kind.plural else []
        watched += [(path, kind.pod_selector, self._on_pod) for path in pods if kind.pod_selector]
        watches = [asyncio.create_task(self._watch(*each)) for each in watched]
        for each in watches:
            each.add_done_callback(self._ended)
        try:
            await self._stopped.wait()
        finally:
            for each in watches:
                each.cancel()
            await self._end()
            self._on_end()

    async def _watch(self, path: str, selector: str, handler: Handler) -> None:
        """List, then follow the watch from there; again from the list after an error."""
        client = SimulatedClient(self._network, _process(), LIST_SECONDS)
        while True:
            try:
                listed = await ObjectApi(client).send("GET", path, query={"labelSelector": selector})
                for each in listed["items"]:
                    await handler(event={"type": None, "object": each})
                version = listed["metadata"]["resourceVersion"]
                while True:
                    version = await _follow(client, path, selector, version, handler)
            except ApiError:
                await asyncio.sleep(RETRY_SECONDS)


async def _follow(client: ApiClient, path: str, selector: str, version: str, handler: Handler) -> str:
    """Hand over the events of one watch; the version that it has reached. Raises ApiError."""
    query = {"resourceVersion": version, "timeoutSeconds": str(WATCH_SECONDS), "labelSelector": selector}
    async with client.stream(path, query, silence=SILENT_SECONDS) as body:
        async for read in body.iter_any():
            for line in read.splitlines():
                event = decode(line)
                if event["type"] == "ERROR":
                    raise UnsureError("WATCH", event["object"]["code"])
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    await handler(event=event)
    return version


def in_place_of_kopf(network: Network) -> dict[str, Any]:
    """What replaces names of the program: connections, the server of health checks, and kopf."""

    @asynccontextmanager
    async def connected(_: object, seconds: float, *__: object) -> AsyncIterator[ApiClient]:
        yield SimulatedClient(network, _process(), seconds)

    @asynccontextmanager
    async def serving(*_: object) -> AsyncIterator[None]:
        yield

    return {
        "connected": connected,
        "credentials": lambda _: None,
        "certificate_of": lambda _: None,
        "access_of": lambda *_: None,
        "health": SimpleNamespace(application=lambda *_, **__: None, serving=serving),
        "SyncLoop": partial(_SimulatedLoop, network),
    }


def _process() -> Process:
    process = PROCESS.get()
    if process is None:
        raise RuntimeError("only a process does this")
    return process
