"""The load generator: creates each pod at its time, deletes pods that succeeded, records how late it was."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from eclectus.api.names import NODE_PROFILES_PATH
from eclectus_e2e.demo.workload.arrivals import Arrival
from eclectus_e2e.demo.workload.pods import NAMESPACE, pod_name, pod_object
from eclectus_e2e.errors import ApiError
from eclectus_e2e.testbed.kubelet.api import Api
from eclectus_e2e.testbed.kubelet.objects import Metadata, Pod

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DELETE_NOW = {"gracePeriodSeconds": 0}
DELETE_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.5


class _Pods(msgspec.Struct, frozen=True):
    items: list[Pod]


class _Object(msgspec.Struct, frozen=True):
    metadata: Metadata


class _Objects(msgspec.Struct, frozen=True):
    items: list[_Object]


@dataclass
class SentPods:
    """The pods sent so far. The load generator appends to it while others read it."""

    planned: int
    began: float  # Unix seconds
    at: dict[str, float] = field(default_factory=dict)  # pod name: Unix seconds of its creation
    late_seconds: list[float] = field(default_factory=list)
    is_over: bool = False  # set to stop sending


async def send(api: Api, arrivals: Sequence[Arrival], scheduler: str, sent: SentPods) -> None:
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


async def create(api: Api, arrival: Arrival, scheduler: str, sent: SentPods, due: float) -> None:
    """Create the pod of an arrival; record when, and how late that was."""
    body = pod_object(arrival, scheduler)
    now = time.time()
    sent.at[pod_name(arrival)] = now
    sent.late_seconds.append(now - due)
    await api.request("POST", PODS, body)


async def delete_succeeded(api: Api) -> None:
    """Delete each pod that succeeds, as a job's controller would, until cancelled."""
    async with asyncio.TaskGroup() as group:
        async for change in api.changes(PODS, Pod, "fieldSelector=status.phase=Succeeded"):
            for pod in change.items if change.kind != "deleted" else ():
                group.create_task(_delete(api, pod))


async def _delete_all(api: Api) -> None:
    """Delete every pod of the demo and wait until none is left. Raises TimeoutError when some stay."""
    left: set[str] = set()
    async with asyncio.timeout(DELETE_TIMEOUT_SECONDS):
        async for change in api.changes(PODS, Pod):
            names = {pod.metadata.name for pod in change.items}
            if change.kind == "synced":  # one by one is fast enough: `delete_succeeded` has left only a few
                for pod in change.items:
                    await _delete(api, pod)
            left = {"synced": names, "written": left | names, "deleted": left - names}[change.kind]
            if not left:
                return


async def _delete_node_profiles(api: Api) -> None:
    """Delete what was learned of nodes, because a scheduler that starts loads it."""
    found = msgspec.json.decode(await api.request("GET", NODE_PROFILES_PATH), type=_Objects)
    for one in found.items:
        await api.request("DELETE", f"{NODE_PROFILES_PATH}/{one.metadata.name}")


async def start_over(api: Api) -> None:
    """Delete every pod of the demo, and what was learned. Raises TimeoutError when some pods stay."""
    await _delete_all(api)
    await _delete_node_profiles(api)


async def running_on_node(api: Api, node: str) -> int:
    """How many pods of the demo run on a node."""
    selector = f"spec.nodeName={node},status.phase=Running"
    answer = await api.request("GET", f"{PODS}?fieldSelector={selector}")
    return len(msgspec.json.decode(answer, type=_Pods).items)


async def delete_on_node(api: Api, node: str) -> list[str]:
    """Delete the pods that are bound to a node, without grace period; returns their names."""
    answer = await api.request("GET", f"{PODS}?fieldSelector=spec.nodeName={node}")
    pods = msgspec.json.decode(answer, type=_Pods).items
    for pod in pods:
        await _delete(api, pod)
    return [pod.metadata.name for pod in pods]


async def wait_until_empty(api: Api, seconds: float) -> bool:
    """Wait until no pod of the demo is left; False when some stay for longer than `seconds`."""
    deadline = time.monotonic() + seconds
    while msgspec.json.decode(await api.request("GET", f"{PODS}?limit=1"), type=_Pods).items:
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


async def _delete(api: Api, pod: Pod) -> None:
    try:
        await api.request("DELETE", f"{PODS}/{pod.metadata.name}", DELETE_NOW)
    except ApiError as error:
        if error.status != 404:  # a list after a gap in the watch may name one that is deleted already
            raise
