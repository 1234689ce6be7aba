"""How much of a resource is allocated, by how much has been asked for: what is told of work that never ends.

The measure of Weng and others, "Beware of Fragmentation", USENIX ATC 2023: x is what has been asked for by
then, in per cent of what there is and counting tasks that were dropped; y is what is held after every task,
and the value at a whole x is the mean of y over the tasks whose x rounds to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from eclectus.model.commands import Bind, Command
from eclectus.model.events import BindRefused, Event, TaskSeen
from eclectus.model.objects import amount_of
from eclectus.sim.base.machine import Machine


def offered(machines: Mapping[str, Machine], resource: str) -> int:
    """What all machines have of it."""
    return sum(amount_of(machine.node.allocatable, resource) for machine in machines.values())


class Allocation:
    """Listens to an engine and keeps two sums per whole per cent."""

    def __init__(self, resource: str, machines: Mapping[str, Machine]) -> None:
        self._resource, self._capacity = resource, offered(machines, resource)
        self._asked = self._held = 0
        self._amounts: dict[str, int] = {}  # uid -> what it asks for
        self._sums: dict[int, tuple[int, float]] = defaultdict(lambda: (0, 0.0))  # x -> count, sum of y

    def hear(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """One step: what the engine was told, and what it answered."""
        del now
        seen = [event.task for event in events if isinstance(event, TaskSeen)]
        arrived = [task for task in seen if not task.ended and task.uid not in self._amounts]
        gone = [task.uid for task in seen if task.ended]
        gone += [event.uid for event in events if isinstance(event, BindRefused)]
        self._amounts |= {task.uid: amount_of(task.spec.requests, self._resource) for task in arrived}
        self._held -= sum(self._amounts[uid] for uid in gone)
        self._held += sum(self._amounts[command.uid] for command in commands if isinstance(command, Bind))
        for task in arrived:
            self._asked += self._amounts[task.uid]
            x = round(100 * self._asked / self._capacity)
            count, total = self._sums[x]
            self._sums[x] = (count + 1, total + self._held)

    @property
    def curve(self) -> dict[int, float]:
        """Asked for, in whole per cent of what there is -> held, in per cent; in order."""
        means = ((x, total / count) for x, (count, total) in sorted(self._sums.items()))
        return {x: 100 * mean / self._capacity for x, mean in means}
