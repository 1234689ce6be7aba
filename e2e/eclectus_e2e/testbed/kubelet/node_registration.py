"""Node objects and their heartbeats: registration, Leases, Ready conditions."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import msgspec

from eclectus_e2e.errors import ApiError
from eclectus_e2e.testbed.kubelet.api import MERGE, STRATEGIC, TRANSIENT, Api, Change
from eclectus_e2e.testbed.kubelet.machine import Machine, NodeState
from eclectus_e2e.testbed.kubelet.objects import Node, lease_object, lease_spec, node_conditions, node_object
from eclectus_e2e.testbed.kubelet.pods.status_writer import Spawn
from eclectus_e2e.testbed.kubelet.quantities import amounts

LOG = logging.getLogger("kubelet.nodes")
LEASE_EVERY_SECONDS = 10.0  # a quarter of the Lease's length, as real kubelets do
STATUS_EVERY_SECONDS = 300.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_AT_ONCE = 32  # registrations in flight

Act = Callable[[Machine], Awaitable[None]]


class NodeKeeper:
    """Speaks for the nodes. One that is frozen or dead says nothing."""

    def __init__(self, api: Api, machines: dict[str, Machine], spawn: Spawn) -> None:
        self._api = api
        self._machines = machines
        self._spawn = spawn
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._reported: dict[str, float] = {}  # node: loop time of its last status

    async def register(self, machines: list[Machine]) -> None:
        """Create the nodes and their first Leases; ones that exist are made as the nodes file says."""
        await asyncio.gather(*(self._register(machine) for machine in machines))

    async def unregister(self) -> None:
        """Delete the nodes (their Leases go with them)."""
        for machine in self._machines.values():
            await self._unless(404, "DELETE", f"/api/v1/nodes/{machine.name}")

    def apply(self, change: Change[Node]) -> None:
        """Take in labels, taints and allocatable as others have made them."""
        if change.kind == "synced":
            for gone in self._machines.keys() - {node.metadata.name for node in change.items}:
                self._machines[gone].uid = ""
        for node in change.items:
            machine = self._machines.get(node.metadata.name)
            if machine and change.kind == "deleted":
                machine.uid = ""  # as a real kubelet: no new registration until it restarts
            elif machine:
                self._read(machine, node)

    async def say_ready(self, machine: Machine) -> None:
        """Report Ready and renew the Lease; a node whose object is gone is registered anew."""
        if machine.uid:
            await self._patiently(self._report, machine)
            await self._patiently(self._renew, machine)
        else:
            await self._register(machine)

    async def heartbeat(self) -> None:
        """For ever: renew each node's Lease every ten seconds, spread evenly; its status seldom."""
        while True:
            machines = list(self._machines.values())
            for machine in machines:
                if machine.state is NodeState.UP and machine.uid:
                    self._spawn(self._beat(machine))
                await asyncio.sleep(LEASE_EVERY_SECONDS / len(machines))
            if not machines:
                await asyncio.sleep(LEASE_EVERY_SECONDS)

    def _read(self, machine: Machine, node: Node) -> None:
        machine.uid = node.metadata.uid
        machine.room.labels = node.metadata.labels
        machine.room.taints = node.spec.taints
        machine.room.allocatable = amounts(node.status.allocatable)
        if not node.ready and machine.state is NodeState.UP:
            # The node-lifecycle controller gave it up while it was frozen, dead or cut off.
            self._spawn(self._patiently(self._report, machine))

    async def _beat(self, machine: Machine) -> None:
        now = asyncio.get_running_loop().time()
        await self._patiently(self._renew, machine)
        if now - self._reported.get(machine.name, now) > STATUS_EVERY_SECONDS:
            await self._patiently(self._report, machine)
        self._reported.setdefault(machine.name, now)

    async def _register(self, machine: Machine) -> None:
        async with self._gate:
            body = node_object(machine.spec, machine.address, time.time())
            if not await self._unless(409, "POST", "/api/v1/nodes", body):
                metadata = {"labels": machine.spec.labels}
                await self._api.request(
                    "PATCH", f"/api/v1/nodes/{machine.name}", {"metadata": metadata}, MERGE
                )
                status = {"status": body["status"]}
                await self._api.request("PATCH", f"/api/v1/nodes/{machine.name}/status", status, STRATEGIC)
            content = await self._api.request("GET", f"/api/v1/nodes/{machine.name}")
            machine.uid = msgspec.json.decode(content, type=Node).metadata.uid
            lease = lease_object(machine.name, machine.uid, time.time())
            if not await self._unless(409, "POST", _LEASES, lease):
                await self._renew(machine)

    async def _renew(self, machine: Machine) -> None:
        path, spec = f"{_LEASES}/{machine.name}", {"spec": lease_spec(machine.name, time.time())}
        if not await self._unless(404, "PATCH", path, spec, MERGE):
            await self._unless(409, "POST", _LEASES, lease_object(machine.name, machine.uid, time.time()))

    async def _report(self, machine: Machine) -> None:
        status = {"status": {"conditions": node_conditions(time.time())}}
        await self._unless(404, "PATCH", f"/api/v1/nodes/{machine.name}/status", status, STRATEGIC)
        self._reported[machine.name] = asyncio.get_running_loop().time()

    async def _unless(
        self, status: int, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> bool:
        """A request; False for the one refusal that the caller is prepared for."""
        try:
            await self._api.request(method, path, body, kind)
        except ApiError as error:
            if error.status != status:
                raise
            return False
        return True

    async def _patiently(self, act: Act, machine: Machine) -> None:
        """Do it, or say why not: the next heartbeat tries again."""
        try:
            await act(machine)
        except (*TRANSIENT, ApiError) as error:
            LOG.warning("node %s: heartbeat failed: %r", machine.name, error)
