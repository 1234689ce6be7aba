"""What happens on the cluster during a soak: pods arrive, and this process plays all kubelets."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterable
from itertools import count, cycle, repeat
from typing import Any

from eclectus_bench.load import DELETE_NOW, node_name
from eclectus_bench.soak import objects
from eclectus_bench.soak.sizes import Sizes
from eclectus_e2e.errors import ApiError
from eclectus_e2e.testbed.chart import NAMESPACE
from eclectus_e2e.testbed.kubelet.api import STRATEGIC, TRANSIENT, Api
from eclectus_e2e.testbed.kubelet.objects import Pod, node_conditions
from eclectus_e2e.testbed.kubelet.pods import status
from eclectus_e2e.testbed.kubelet.pods.status import Addresses

ARRIVING = "arriving"  # namespace of the pods that come and go
NODE_REPORT_SECONDS = 300.0  # how often a kubelet without news writes its node's status
PROBE_SECONDS = 3.0  # for which a probe runs
ADDRESSES = Addresses("10.0.0.1", "10.0.0.2")  # that nobody connects to
GONE = (404, 409)  # the operator has deleted the pod, or another one has its name


class Traffic:
    """The arriving pods and the kubelets.

    `waits`: seconds from sending a pod until its bind was seen; `sent`: when these were sent, and
    `waiting`: when others were, by name, in seconds of `time.monotonic`; `problems`: requests that failed;
    `probed`: whether a probe has ended.
    """

    def __init__(self, api: Api, sizes: Sizes) -> None:
        self._api, self._sizes = api, sizes
        self._rng = random.Random(1)
        self.waits: list[float] = []
        self.sent: list[float] = []
        self.waiting: dict[str, float] = {}
        self.problems: list[str] = []
        self.probed = asyncio.Event()

    async def run(self) -> None:
        """Create pods, and report as kubelets, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._arrive(group))
            group.create_task(self._report_nodes(group))
            for namespace in (ARRIVING, NAMESPACE):
                group.create_task(self._run_pods(namespace, group))

    async def _arrive(self, group: asyncio.TaskGroup) -> None:
        path = _pods_path(ARRIVING)
        gaps = (self._rng.expovariate(self._sizes.rate) for _ in repeat(None))
        index = count()
        async for _ in paced(gaps):
            body = objects.arriving(next(index))
            self.waiting[body["metadata"]["name"]] = time.monotonic()
            group.create_task(self._send("POST", path, body))

    async def _report_nodes(self, group: asyncio.TaskGroup) -> None:
        nodes = cycle(range(self._sizes.nodes))
        async for _ in paced(repeat(NODE_REPORT_SECONDS / self._sizes.nodes)):
            body = {"status": {"conditions": node_conditions(time.time())}}
            path = f"/api/v1/nodes/{node_name(next(nodes))}/status"
            group.create_task(self._send("PATCH", path, body, STRATEGIC))

    async def _run_pods(self, namespace: str, group: asyncio.TaskGroup) -> None:
        """Run every pod of the namespace as soon as it is bound, and confirm what is deleted."""
        path, seen = _pods_path(namespace), set[str]()
        async for change in self._api.changes(path, Pod, "fieldSelector=spec.nodeName!="):
            for pod in change.items:
                name, uid = pod.metadata.name, pod.metadata.uid
                if change.kind == "deleted":
                    seen.discard(uid)
                elif uid not in seen:
                    seen.add(uid)
                    if (sent_at := self.waiting.pop(name, None)) is not None:
                        self.waits.append(time.monotonic() - sent_at)
                        self.sent.append(sent_at)
                    group.create_task(self._run_pod(pod, f"{path}/{name}"))
                elif pod.awaits_confirmation:
                    group.create_task(self._send("DELETE", f"{path}/{name}", DELETE_NOW))

    async def _run_pod(self, pod: Pod, path: str) -> None:
        is_probe, started = pod.metadata.namespace == NAMESPACE, time.time()
        mean = self._sizes.life_seconds
        seconds = PROBE_SECONDS if is_probe else self._rng.expovariate(1 / mean)
        running = status.running(pod, ADDRESSES, started, 0)
        await self._send("PATCH", f"{path}/status", running, STRATEGIC)
        await asyncio.sleep(seconds)
        ended = status.ended(
            pod, ADDRESSES, started=started, finished=started + seconds, restarts=0, exit_code=0
        )
        await self._send("PATCH", f"{path}/status", ended, STRATEGIC)
        if is_probe:  # the operator deletes it
            self.probed.set()
        else:
            await self._send("DELETE", path, DELETE_NOW)

    async def _send(self, method: str, path: str, body: Any, kind: str = "application/json") -> None:
        """Send one request; a failure is recorded, and the soak goes on."""
        try:
            await self._api.request(method, path, body, kind)
        except ApiError as error:
            if error.status not in GONE:
                self.problems.append(str(error))
        except TRANSIENT as error:
            self.problems.append(f"{method} {path}: no answer: {error!r}")


async def paced(gaps: Iterable[float]) -> AsyncIterator[None]:
    """Yields after each gap, in seconds; what is late is made up for, so the mean rate holds."""
    due = time.monotonic()
    for gap in gaps:
        due += gap
        await asyncio.sleep(due - time.monotonic())
        yield


def _pods_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"
