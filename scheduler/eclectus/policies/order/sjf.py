"""Shortest job first, a job being as long as its critical path.

Kelley, Walker, "Critical-Path Planning and Scheduling", 1959, for the length; Smith, "Various optimizers
for single-stage production", 1956, for shortest first. Among jobs the one with the shortest critical path
from here to its end goes first; within a job the task on the longest path, as in list scheduling by bottom
levels (Hu, 1961). `Task.path` says how long that is, or for lack of it the task's own estimate.

Departures: a job's length is the longest path among its tasks that may take a turn, so a task without
room anywhere does not count; running tasks have begun and do not count either. A task of which nothing is
known goes last: who says nothing must not overtake. `spec.priority` goes before everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from eclectus.framework import ClassQueue, Order, View
from eclectus.model.objects import Task
from eclectus.policies.shared.by_group import turns_by_group


@dataclass(frozen=True)
class ShortestJob(Order):
    """Priority, then the job of the shortest critical path, then age."""

    def group(self, task: Task) -> str:
        """Its job."""
        return task.job or task.uid

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Within a job: the longest path first."""
        return (-task.priority, -path(task), task.created, serial)

    def queues_in_order(self, view: View, lanes: Iterable[ClassQueue]) -> Iterator[ClassQueue]:
        """The first head of a job stands on its longest path."""
        yield from turns_by_group(lanes, _rank)


def path(task: Task) -> float:
    """Seconds from its start to the end of its job; inf if unknown."""
    known = task.path if task.path is not None else task.estimate
    return inf if known is None else known


def _rank(lane: ClassQueue, head: Task) -> tuple[float, ...]:
    return (-head.priority, path(head), head.created)
