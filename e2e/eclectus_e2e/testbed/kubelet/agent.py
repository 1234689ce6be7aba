"""The fake kubelet put together: watches in, pods and nodes played, commands obeyed."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from eclectus_e2e.errors import UsageError
from eclectus_e2e.testbed.kubelet.api import Access, Api
from eclectus_e2e.testbed.kubelet.machine import Machine, NodeState
from eclectus_e2e.testbed.kubelet.node_registration import NodeKeeper
from eclectus_e2e.testbed.kubelet.nodes import NodeSpec, check_nodes
from eclectus_e2e.testbed.kubelet.objects import Node, Pod
from eclectus_e2e.testbed.kubelet.pod_times import Journal
from eclectus_e2e.testbed.kubelet.pods.lifecycle import Pods
from eclectus_e2e.testbed.kubelet.pods.status_writer import Writer


class Agent:
    """All nodes of one process. Made by `running`, inside a task group."""

    def __init__(
        self, api: Api, nodes: Sequence[NodeSpec], journal: Journal, group: asyncio.TaskGroup
    ) -> None:
        self._api = api
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()
        self.journal = journal
        self.machines = {spec.name: Machine(spec, number) for number, spec in enumerate(nodes, start=1)}
        self.pods = Pods(self.machines, Writer(api, self._spawn), journal)
        self.keeper = NodeKeeper(api, self.machines, self._spawn)

    async def begin(self) -> None:
        """Register every node, then watch and beat until the task group ends."""
        await self.keeper.register(list(self.machines.values()))
        self._spawn(self._watch_nodes())
        self._spawn(self._watch_pods())
        self._spawn(self.keeper.heartbeat())

    def end(self) -> None:
        """Cancel everything that goes on."""
        for task in self._tasks:
            task.cancel()

    def chosen(self, names: Sequence[str] | None, group: str | None) -> list[Machine]:
        """The nodes of these names, or of a group; UsageError names what does not exist."""
        if group is not None:
            found = [machine for machine in self.machines.values() if machine.spec.group == group]
            if not found:
                known = sorted({machine.spec.group for machine in self.machines.values()})
                raise UsageError(f"no node is of group {group!r}; the groups are {', '.join(known)}")
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
        """A new true speed; running pods go on at it. At 0 they stand still, and the node seems well."""
        wrong = [value for value in (class_factors or {}).values() if not value > 0]
        if not 0 <= speed < float("inf") or wrong:
            raise UsageError(f"a speed must be 0 or more and a factor above 0, not {[speed, *wrong][-1]}")
        for machine in machines:
            machine.speed = speed
            machine.class_factors = machine.class_factors if class_factors is None else class_factors
            self.pods.rescale(machine)

    def stop(self, machines: Sequence[Machine], state: NodeState) -> None:
        """Freeze or kill nodes. A dead one stays dead when it is told to freeze."""
        for machine in machines:
            machine.state = NodeState.DEAD if machine.state is NodeState.DEAD else state
            self.pods.rescale(machine)

    def thaw(self, machines: Sequence[Machine]) -> None:
        """Let frozen nodes go on; others are left as they are."""
        for machine in machines:
            if machine.state is NodeState.FROZEN:
                self._up(machine)

    def recover(self, machines: Sequence[Machine]) -> None:
        """Start dead nodes again, without the pods that ran on them; register those that are missing."""
        for machine in machines:
            if machine.state is NodeState.DEAD:
                machine.state = NodeState.UP
                self.pods.lose(machine)
                self._up(machine)
            elif not machine.uid:
                self._spawn(self.keeper.say_ready(machine))

    async def add(self, specs: Sequence[NodeSpec]) -> None:
        """More nodes, while running."""
        check_nodes([*(machine.spec for machine in self.machines.values()), *specs], "the nodes to add")
        first = len(self.machines) + 1
        added = [Machine(spec, number) for number, spec in enumerate(specs, start=first)]
        self.machines.update({machine.name: machine for machine in added})
        await self.keeper.register(added)

    def _up(self, machine: Machine) -> None:
        machine.state = NodeState.UP
        self.pods.resume(machine)
        self._spawn(self.keeper.say_ready(machine))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # In the group an unforeseen error ends the process with a traceback, instead of half a kubelet.
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch_pods(self) -> None:
        async for change in self._api.changes("/api/v1/pods", Pod, "fieldSelector=spec.nodeName!="):
            self.pods.apply(change)

    async def _watch_nodes(self) -> None:
        async for change in self._api.changes("/api/v1/nodes", Node):
            self.keeper.apply(change)


@asynccontextmanager
async def running(
    access: Access, nodes: Sequence[NodeSpec], journal: Journal, *, deregister: bool
) -> AsyncIterator[Agent]:
    """A fake kubelet for the length of the block; `deregister` deletes its nodes at the end."""
    async with Api(access) as api, asyncio.TaskGroup() as group:
        agent = Agent(api, nodes, journal, group)
        await agent.begin()
        yield agent
        agent.end()
        if deregister:
            await agent.keeper.unregister()
