"""The fake kubelet: watches nodes and pods, simulates them, and carries out the control commands."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from eclectus_e2e.errors import UsageError
from eclectus_e2e.testbed.kubelet.api import Access, Api
from eclectus_e2e.testbed.kubelet.machine import Machine, NodeState
from eclectus_e2e.testbed.kubelet.node_registration import NodeRegistration
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec, check_nodes
from eclectus_e2e.testbed.kubelet.objects import Node, Pod
from eclectus_e2e.testbed.kubelet.pod_times import PodTimes
from eclectus_e2e.testbed.kubelet.pods.lifecycle import PodLifecycle
from eclectus_e2e.testbed.kubelet.pods.status_writer import StatusWriter


class Agent:
    """All nodes of one process. Created by `running`, inside a task group."""

    def __init__(
        self, api: Api, nodes: Sequence[NodeSpec], pod_times: PodTimes, group: asyncio.TaskGroup
    ) -> None:
        self._api = api
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()
        self.pod_times = pod_times
        self.machines = {spec.name: Machine(spec, number) for number, spec in enumerate(nodes, start=1)}
        self.pods = PodLifecycle(self.machines, StatusWriter(api, self._spawn), pod_times)
        self.registration = NodeRegistration(api, self.machines, self._spawn)

    async def start(self) -> None:
        """Register every node, then watch and send heartbeats until `cancel_tasks`."""
        await self.registration.register(list(self.machines.values()))
        self._spawn(self._watch_nodes())
        self._spawn(self._watch_pods())
        self._spawn(self.registration.heartbeat())

    def cancel_tasks(self) -> None:
        """Cancel all tasks."""
        for task in self._tasks:
            task.cancel()

    def chosen(self, names: Sequence[str] | None, group: str | None) -> list[Machine]:
        """The nodes of these names, or of a group. Raises UsageError for an unknown name or group."""
        if group is not None:
            found = [machine for machine in self.machines.values() if machine.spec.group == group]
            if not found:
                known = sorted({machine.spec.group for machine in self.machines.values()})
                raise UsageError(f"no node has the group {group!r}; the groups are {', '.join(known)}")
            return found
        unknown = [name for name in names or () if name not in self.machines]
        if unknown or not names:
            raise UsageError(
                f"no such node: {', '.join(unknown)}" if unknown else "name some nodes, or a group"
            )
        return [self.machines[name] for name in names]

    def set_speed(
        self, machines: Sequence[Machine], speed: float, class_factors: dict[str, float] | None = None
    ) -> None:
        """Set the true speed, also for running pods. At 0 they make no progress, and the node stays Ready."""
        wrong = [value for value in (class_factors or {}).values() if not value > 0]
        if not 0 <= speed < float("inf") or wrong:
            raise UsageError(f"a speed must be 0 or more and a factor above 0, not {[speed, *wrong][-1]}")
        for machine in machines:
            machine.speed = speed
            machine.class_factors = machine.class_factors if class_factors is None else class_factors
            self.pods.update_speeds(machine)

    def stop_nodes(self, machines: Sequence[Machine], state: NodeState) -> None:
        """Freeze or kill nodes. Freezing a dead node leaves it dead."""
        for machine in machines:
            machine.state = NodeState.DEAD if machine.state is NodeState.DEAD else state
            self.pods.update_speeds(machine)

    def thaw(self, machines: Sequence[Machine]) -> None:
        """Resume frozen nodes; nodes in another state are left alone."""
        for machine in machines:
            if machine.state is NodeState.FROZEN:
                self._resume(machine)

    def recover(self, machines: Sequence[Machine]) -> None:
        """Restart dead nodes without the pods that ran on them; register nodes whose object was deleted."""
        for machine in machines:
            if machine.state is NodeState.DEAD:
                machine.state = NodeState.UP
                self.pods.fail_or_restart(machine)
                self._resume(machine)
            elif not machine.uid:
                self._spawn(self.registration.report_ready(machine))

    async def add(self, specs: Sequence[NodeSpec]) -> None:
        """Add and register nodes while running."""
        check_nodes([*(machine.spec for machine in self.machines.values()), *specs], "the nodes to add")
        first = len(self.machines) + 1
        added = [Machine(spec, number) for number, spec in enumerate(specs, start=first)]
        self.machines.update({machine.name: machine for machine in added})
        await self.registration.register(added)

    def _resume(self, machine: Machine) -> None:
        machine.state = NodeState.UP
        self.pods.resume(machine)
        self._spawn(self.registration.report_ready(machine))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # In the group an unexpected error ends the whole process with a traceback, not only one task.
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch_pods(self) -> None:
        async for change in self._api.changes("/api/v1/pods", Pod, "fieldSelector=spec.nodeName!="):
            self.pods.apply(change)

    async def _watch_nodes(self) -> None:
        async for change in self._api.changes("/api/v1/nodes", Node):
            self.registration.apply(change)


@asynccontextmanager
async def running(
    access: Access, nodes: Sequence[NodeSpec], pod_times: PodTimes, *, deregister: bool
) -> AsyncIterator[Agent]:
    """Run a fake kubelet within the block; with `deregister` its Node objects are deleted at the end."""
    async with Api(access) as api, asyncio.TaskGroup() as group:
        agent = Agent(api, nodes, pod_times, group)
        await agent.start()
        yield agent
        agent.cancel_tasks()
        if deregister:
            await agent.registration.unregister()
