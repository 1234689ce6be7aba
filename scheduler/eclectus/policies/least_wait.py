"""Least estimated wait, placed centrally (CLWL), or by a picture that is renewed now and then (DLWL).

CLWL and DLWL are the centralised and the distributed rival of Delgado, Didona, Dinu, Zwaenepoel, "Eagle",
SoCC 2016: every task joins the line of the node with the least estimated wait, that is the estimates of
what stands there less the time the running task has had. Short jobs may use every node, long ones
the long partition. With `heartbeat` the waits are looked up only so often (DLWL, which stands for
Yaq-d); in between the picture is kept by adding what has been placed, and what ends is not seen.

Departures: heartbeats come one for all nodes, and the jitter is uniform instead of whole seconds; on
nodes of several slots the work is taken to be shared evenly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from eclectus.core.model import Task
from eclectus.core.seam import Action, PlacePolicy, Refuse, View
from eclectus.core.settings import Setting
from eclectus.feasibility.classes import Floats, TaskClass
from eclectus.policies.backlog import Backlog, join_least_wait
from eclectus.policies.partition import Partition
from eclectus.policies.reservations import jobs


@dataclass(eq=False)
class CentralLeastWait(Partition, PlacePolicy):
    """CLWL: waits as they are."""

    def __post_init__(self) -> None:
        self._backlog = Backlog()

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        """A job at a time, each of its tasks where the wait is least, those before it counted."""
        for tasks in jobs(turns):
            task_class = view.task_class(tasks[0])
            rows = task_class.waitable_rows
            if not len(rows):
                yield from (Refuse(task) for task in tasks)
                continue
            if self.is_long(tasks[0]):
                rows = self.rows_for_long(view, rows)
            every = self._waits(view, task_class)
            waits = every[rows]
            yield from join_least_wait(view, tasks, rows, waits, task_class)
            every[rows] = waits

    def _waits(self, view: View, task_class: TaskClass) -> Floats:
        """By row, shape [capacity]."""
        self._backlog.refresh(view)
        return self._backlog.wait(view, task_class, np.arange(view.cluster.capacity))


@dataclass(eq=False)
class DistributedLeastWait(CentralLeastWait):
    """DLWL: waits as they were at the last heartbeat."""

    heartbeat: Annotated[
        float,
        Setting(
            "time between two looks at the waits, to which up to as much is added at random",
            unit="s",
            why="the published example's",
            least=0,
        ),
    ] = 8.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._due = -np.inf  # the next heartbeat, seconds
        self._seen: dict[TaskClass, Floats] = {}

    def _waits(self, view: View, task_class: TaskClass) -> Floats:
        if view.now >= self._due:
            self._due = view.now + self.heartbeat * (1.0 + view.rng.random())
            self._seen.clear()
            self._backlog.refresh(view)
        seen = self._seen.get(task_class)
        if seen is None or len(seen) < view.cluster.capacity:
            every = np.arange(view.cluster.capacity)
            seen = self._seen[task_class] = self._backlog.wait(view, task_class, every)
        return seen
