"""The allocation curve: how much of a resource is allocated, by how much has been requested so far.

This is the result for tasks that never end, as in Weng and others, "Beware of Fragmentation", USENIX ATC
2023. x is the sum of all requests so far in per cent of capacity, including tasks that were dropped; y is
what is allocated after each task, and the value at a whole x is the mean of y over the tasks whose x rounds
to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from eclectus.model.commands import Bind, Command
from eclectus.model.events import BindRefused, Event, TaskSeen
from eclectus.model.objects import amount_of
from eclectus.sim.base.machine import Machine


def total_allocatable(machines: Mapping[str, Machine], resource: str) -> int:
    """The sum over all machines."""
    return sum(amount_of(machine.node.allocatable, resource) for machine in machines.values())


class AllocationCurve:
    """Collects the curve from the events and commands of an engine."""

    def __init__(self, resource: str, machines: Mapping[str, Machine]) -> None:
        self._resource, self._capacity = resource, total_allocatable(machines, resource)
        self._requested = self._allocated = 0
        self._amounts: dict[str, int] = {}  # uid -> requested amount
        self._sums: dict[int, tuple[int, float]] = defaultdict(lambda: (0, 0.0))  # x -> count, sum of y

    def record_step(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one step of the engine: its events and the commands it returned."""
        del now
        seen = [event.task for event in events if isinstance(event, TaskSeen)]
        arrived = [task for task in seen if not task.ended and task.uid not in self._amounts]
        gone = [task.uid for task in seen if task.ended]
        gone += [event.uid for event in events if isinstance(event, BindRefused)]
        self._amounts |= {task.uid: amount_of(task.spec.requests, self._resource) for task in arrived}
        self._allocated -= sum(self._amounts[uid] for uid in gone)
        self._allocated += sum(
            self._amounts[command.uid] for command in commands if isinstance(command, Bind)
        )
        for task in arrived:
            self._requested += self._amounts[task.uid]
            x = round(100 * self._requested / self._capacity)
            count, total = self._sums[x]
            self._sums[x] = (count + 1, total + self._allocated)

    @property
    def curve(self) -> dict[int, float]:
        """Requested, in whole per cent of capacity -> allocated, in per cent; ascending."""
        means = ((x, total / count) for x, (count, total) in sorted(self._sums.items()))
        return {x: 100 * mean / self._capacity for x, mean in means}
