"""Registration of nodes and their heartbeats: Leases and Ready conditions."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from eclectus_e2e.errors import ApiError
from eclectus_e2e.testbed.kubelet.api import MERGE, STRATEGIC, TRANSIENT, Api, Change
from eclectus_e2e.testbed.kubelet.machine import Machine, NodeState
from eclectus_e2e.testbed.kubelet.objects import Node, lease_object, lease_spec, node_conditions, node_object
from eclectus_e2e.testbed.kubelet.pods.status_writer import Spawn
from eclectus_e2e.testbed.kubelet.quantities import amounts

LOG = logging.getLogger("kubelet.nodes")
LEASE_EVERY_SECONDS = 10.0  # a quarter of the Lease duration, as real kubelets do
STATUS_EVERY_SECONDS = 300.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_MAX_IN_FLIGHT = 32  # registrations

NodeAction = Callable[[Machine], Awaitable[None]]


class NodeRegistration:
    """Writes Node and Lease objects. Sends nothing for a frozen or dead node."""

    def __init__(self, api: Api, machines: dict[str, Machine], spawn: Spawn) -> None:
        self._api = api
        self._machines = machines
        self._spawn = spawn
        self._in_flight = asyncio.Semaphore(_MAX_IN_FLIGHT)
        self._reported: dict[str, float] = {}  # by node: loop time of its last status update

    async def register(self, machines: list[Machine]) -> None:
        """Create the Node and Lease objects; existing ones get the labels and status of the nodes file."""
        await asyncio.gather(*(self._register(machine) for machine in machines))

    async def unregister(self) -> None:
        """Delete the Node objects; their Leases are garbage collected."""
        for machine in self._machines.values():
            await self._request_unless(404, "DELETE", f"/api/v1/nodes/{machine.name}")

    def apply(self, change: Change[Node]) -> None:
        """Apply labels, taints and allocatable from the watch."""
        if change.kind == "synced":
            for deleted in self._machines.keys() - {node.metadata.name for node in change.items}:
                self._machines[deleted].uid = ""
        for node in change.items:
            machine = self._machines.get(node.metadata.name)
            if machine and change.kind == "deleted":
                machine.uid = ""  # like a real kubelet, it registers again only after a restart
            elif machine:
                self._update(machine, node)

    async def report_ready(self, machine: Machine) -> None:
        """Report Ready and renew the Lease; register a node whose object was deleted."""
        if machine.uid:
            await self._attempt(self._report, machine)
            await self._attempt(self._renew, machine)
        else:
            await self._register(machine)

    async def heartbeat(self) -> None:
        """Renew each Lease every ten seconds, spread evenly, and each status every five minutes; endless."""
        while True:
            machines = list(self._machines.values())
            for machine in machines:
                if machine.state is NodeState.UP and machine.uid:
                    self._spawn(self._beat(machine))
                await asyncio.sleep(LEASE_EVERY_SECONDS / len(machines))
            if not machines:
                await asyncio.sleep(LEASE_EVERY_SECONDS)

    def _update(self, machine: Machine, node: Node) -> None:
        machine.uid = node.metadata.uid
        machine.info.labels = node.metadata.labels
        machine.info.taints = node.spec.taints
        machine.info.allocatable = amounts(node.status.allocatable)
        if not node.ready and machine.state is NodeState.UP:
            # The node-lifecycle controller marked it not ready while it was frozen, dead or disconnected.
            self._spawn(self._attempt(self._report, machine))
        if node.unlisted and machine.state is NodeState.UP:
            self._spawn(self._attempt(partial(self._list, node.unlisted), machine))

    async def _beat(self, machine: Machine) -> None:
        now = asyncio.get_running_loop().time()
        await self._attempt(self._renew, machine)
        if now - self._reported.get(machine.name, now) > STATUS_EVERY_SECONDS:
            await self._attempt(self._report, machine)
        self._reported.setdefault(machine.name, now)

    async def _register(self, machine: Machine) -> None:
        async with self._in_flight:
            body = node_object(machine.spec, machine.address, time.time())
            if not await self._request_unless(409, "POST", "/api/v1/nodes", body):
                metadata = {"labels": machine.spec.labels}
                await self._api.request(
                    "PATCH", f"/api/v1/nodes/{machine.name}", {"metadata": metadata}, MERGE
                )
                status = {"status": body["status"]}
                await self._api.request("PATCH", f"/api/v1/nodes/{machine.name}/status", status, STRATEGIC)
            content = await self._api.request("GET", f"/api/v1/nodes/{machine.name}")
            machine.uid = msgspec.json.decode(content, type=Node).metadata.uid
            lease = lease_object(machine.name, machine.uid, time.time())
            if not await self._request_unless(409, "POST", _LEASES, lease):
                await self._renew(machine)

    async def _renew(self, machine: Machine) -> None:
        path, spec = f"{_LEASES}/{machine.name}", {"spec": lease_spec(machine.name, time.time())}
        if not await self._request_unless(404, "PATCH", path, spec, MERGE):
            await self._request_unless(
                409, "POST", _LEASES, lease_object(machine.name, machine.uid, time.time())
            )

    async def _report(self, machine: Machine) -> None:
        status = {"status": {"conditions": node_conditions(time.time())}}
        await self._request_unless(404, "PATCH", f"/api/v1/nodes/{machine.name}/status", status, STRATEGIC)
        self._reported[machine.name] = asyncio.get_running_loop().time()

    async def _list(self, resources: dict[str, str], machine: Machine) -> None:
        """Copy extended resources from capacity to allocatable, as a kubelet does."""
        status = {"status": {"allocatable": resources}}
        await self._request_unless(404, "PATCH", f"/api/v1/nodes/{machine.name}/status", status, STRATEGIC)

    async def _request_unless(
        self, status: int, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> bool:
        """Send a request; False when the server responds with `status`, which the caller expects."""
        try:
            await self._api.request(method, path, body, kind)
        except ApiError as error:
            if error.status != status:
                raise
            return False
        return True

    async def _attempt(self, act: NodeAction, machine: Machine) -> None:
        """Call `act`; a failure is logged, and the next heartbeat tries again."""
        try:
            await act(machine)
        except (*TRANSIENT, ApiError) as error:
            LOG.warning("node %s: heartbeat failed: %r", machine.name, error)
