"""The load: creates each pod at its time, deletes each that has ended, and says how late it was."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from eclectus.api.names import NODE_PROFILES_PATH
from eclectus_e2e.demo.objects import NAMESPACE, pod_name, pod_object
from eclectus_e2e.demo.stream import Arrival
from eclectus_e2e.errors import ApiError
from eclectus_e2e.testbed.kubelet.api import Api
from eclectus_e2e.testbed.kubelet.objects import Metadata, Pod

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_AT_ONCE = {"gracePeriodSeconds": 0}
CLEAR_SECONDS = 60.0
_ASK_EVERY_SECONDS = 0.5


class _Pods(msgspec.Struct, frozen=True):
    items: list[Pod]


class _Object(msgspec.Struct, frozen=True):
    metadata: Metadata


class _Named(msgspec.Struct, frozen=True):
    items: list[_Object]


@dataclass
class Sent:
    """What has been sent so far: growing while the load runs, read by whoever shows it."""

    planned: int
    began: float  # Unix seconds
    at: dict[str, float] = field(default_factory=dict)  # pod name: Unix seconds of its creation
    late_seconds: list[float] = field(default_factory=list)
    is_over: bool = False  # whether nothing else is to be sent


async def send(api: Api, arrivals: Sequence[Arrival], scheduler: str, sent: Sent) -> None:
    """Create every pod at `sent.began` + its time, until `sent.is_over`.

    Raises ApiError when the API server refuses one.
    """
    async with asyncio.TaskGroup() as group:
        for arrival in arrivals:
            due = sent.began + arrival.at_seconds
            await asyncio.sleep(due - time.time())
            if sent.is_over:
                return
            group.create_task(create(api, arrival, scheduler, sent, due))


async def sweep(api: Api) -> None:
    """For ever: delete each pod that has succeeded, as a job's controller would."""
    async with asyncio.TaskGroup() as group:
        async for change in api.changes(PODS, Pod, "fieldSelector=status.phase=Succeeded"):
            for pod in change.items if change.kind != "deleted" else ():
                group.create_task(_delete(api, pod))


async def clear(api: Api) -> None:
    """Delete every pod of the demo and wait until none is left. Raises TimeoutError when some stay."""
    left: set[str] = set()
    async with asyncio.timeout(CLEAR_SECONDS):
        async for change in api.changes(PODS, Pod):
            names = {pod.metadata.name for pod in change.items}
            if change.kind == "synced":  # one by one: a moment's work, since the sweeper has left but a few
                for pod in change.items:
                    await _delete(api, pod)
            left = {"synced": names, "written": left | names, "deleted": left - names}[change.kind]
            if not left:
                return


async def forget(api: Api) -> None:
    """Delete what was learned of nodes: a scheduler that starts recalls it."""
    found = msgspec.json.decode(await api.request("GET", NODE_PROFILES_PATH), type=_Named)
    for one in found.items:
        await api.request("DELETE", f"{NODE_PROFILES_PATH}/{one.metadata.name}")


async def give_up(api: Api, node: str) -> list[str]:
    """Delete what is bound to a node, at once; the names of these pods."""
    answer = await api.request("GET", f"{PODS}?fieldSelector=spec.nodeName={node}")
    pods = msgspec.json.decode(answer, type=_Pods).items
    for pod in pods:
        await _delete(api, pod)
    return [pod.metadata.name for pod in pods]


async def emptied(api: Api, seconds: float) -> bool:
    """Wait until no pod of the demo is left; False when some stay."""
    deadline = time.monotonic() + seconds
    while msgspec.json.decode(await api.request("GET", f"{PODS}?limit=1"), type=_Pods).items:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_ASK_EVERY_SECONDS)
    return True


async def create(api: Api, arrival: Arrival, scheduler: str, sent: Sent, due: float) -> None:
    """Create the pod of an arrival, and note when and how late that was."""
    body = pod_object(arrival, scheduler)
    now = time.time()
    sent.at[pod_name(arrival)] = now
    sent.late_seconds.append(now - due)
    await api.request("POST", PODS, body)


async def _delete(api: Api, pod: Pod) -> None:
    try:
        await api.request("DELETE", f"{PODS}/{pod.metadata.name}", _AT_ONCE)
    except ApiError as error:
        if error.status != 404:  # a list after a gap in the watch may name one that is deleted already
            raise
