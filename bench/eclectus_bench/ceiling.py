"""`python -m eclectus_bench.ceiling KUBECONFIG`: a scheduler that decides nothing.

It binds each pod to the next node in turn and then writes its event, by the client of Eclectus, with as many
requests at once, and binds before events. On the same control plane nothing binds faster by these two
requests a pod, so what a scheduler reaches is a share of this.
"""

import asyncio
import sys
import time
from itertools import count, cycle
from pathlib import Path

import msgspec
import uvloop

from eclectus.config.process_settings import ClientConnectionSettings
from eclectus.kubeclient.client import ApiClient, connected
from eclectus.kubeclient.credentials import load
from eclectus.live.write.binder import binding
from eclectus.live.write.event_recorder import event_body
from eclectus.live.write.write_queues import pod_path
from eclectus.model.commands import Bind
from eclectus_e2e.testbed.kubelet.api import Api, read_access

SCHEDULER = "ceiling"  # the schedulerName of its pods
REQUEST_SECONDS = 30.0
BIND, EVENT = range(2)  # what is sent first
SELECTOR = f"fieldSelector=spec.nodeName=,spec.schedulerName={SCHEDULER}"
# Rank, serial, and what is bound to which node.
Waiting = asyncio.PriorityQueue[tuple[int, int, Bind]]


class _Metadata(msgspec.Struct, frozen=True):
    name: str
    namespace: str = ""
    uid: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Metadata


class _Nodes(msgspec.Struct, frozen=True):
    items: list[_Named]


async def serve(kubeconfig: Path) -> None:
    """Bind pods until cancelled. Raises an ExceptionGroup when a request is refused."""
    waiting: Waiting = asyncio.PriorityQueue()
    async with (
        connected(load(kubeconfig), REQUEST_SECONDS, SCHEDULER) as client,
        Api(read_access(kubeconfig)) as api,
        asyncio.TaskGroup() as group,
    ):
        for _ in range(ClientConnectionSettings().requests_in_flight):
            group.create_task(_send(client, waiting))
        found = msgspec.json.decode(await client.get("/api/v1/nodes"), type=_Nodes)
        nodes, serials = cycle([each.metadata.name for each in found.items]), count()
        async for change in api.changes("/api/v1/pods", _Named, SELECTOR):
            for pod in change.items if change.kind != "deleted" else ():
                uid, namespace, name = pod.metadata.uid, pod.metadata.namespace, pod.metadata.name
                waiting.put_nowait((BIND, next(serials), Bind(uid, namespace, name, next(nodes), SCHEDULER)))


async def _send(client: ApiClient, waiting: Waiting) -> None:
    while True:
        rank, serial, bind = await waiting.get()
        if rank == EVENT:
            await client.send(
                "POST", f"/apis/events.k8s.io/v1/namespaces/{bind.namespace}/events", _event(bind)
            )
            continue
        await client.send("POST", f"{pod_path(bind)}/binding", binding(bind, {}))
        waiting.put_nowait((EVENT, serial, bind))


def _event(bind: Bind) -> dict[str, object]:
    fields = {
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": f"Successfully assigned {bind.namespace}/{bind.name} to {bind.node}",
    }
    return event_body(bind, fields, SCHEDULER, time.time_ns())


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1])))
