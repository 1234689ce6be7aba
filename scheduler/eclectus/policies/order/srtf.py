"""Shortest remaining time first: the job with the least work left.

Schrage, "A proof of the optimality of the shortest remaining processing time discipline", 1968. For jobs
of many tasks the remaining time is read as remaining work, as in Tetris (Grandl et al., SIGCOMM 2014) and
Carbyne (OSDI 2016): what has not begun, in task-seconds.

Departures: nothing that runs is preempted; work is not weighed by demand, since a pod's annotation knows
no cluster. A job of which nothing is known goes last. `spec.priority` goes before everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eclectus.framework import ClassQueue, Order, View
from eclectus.model.objects import Task
from eclectus.policies.shared.by_group import turns_by_group


@dataclass(frozen=True)
class LeastWorkLeft(Order):
    """Priority, then the job with the least work left, then age."""

    @property
    def wants_work(self) -> bool:
        """It is the whole idea."""
        return True

    def group(self, task: Task) -> str:
        """Its job."""
        return task.job or task.uid

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Within a job: age."""
        return (-task.priority, task.created, serial)

    def queues_in_order(self, view: View, lanes: Iterable[ClassQueue]) -> Iterator[ClassQueue]:
        """What a job was given in one turn has begun in the next."""
        yield from turns_by_group(lanes, lambda lane, head: (-head.priority, view.work_left(head)))
