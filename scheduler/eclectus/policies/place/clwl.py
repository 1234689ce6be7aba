"""Least estimated wait, placed centrally (CLWL), or by a picture that is renewed now and then (DLWL).

CLWL and DLWL are the centralised and the distributed rival of Delgado, Didona, Dinu, Zwaenepoel, "Eagle",
SoCC 2016: every task joins the line of the node with the least estimated wait, that is the estimates of
what stands there less the time the running task has had. Short jobs may use every node, long ones
the long partition. With `heartbeat` the waits are looked up only so often (DLWL, which stands for
Yaq-d); in between the picture is kept by adding what has been placed, and what ends is not seen.

Departures: heartbeats come one for all nodes, and the jitter is uniform instead of whole seconds; a kind
of task that was not placed in the last heartbeat is looked up when it comes; on nodes of several slots
the work is taken to be shared evenly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, Enqueue, View
from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey
from eclectus.model.settings import Setting
from eclectus.policies.shared.backlog import Backlog, expected_seconds
from eclectus.policies.shared.jobwise import Jobwise
from eclectus.policies.shared.partition import Partition


@dataclass(eq=False)
class CentralLeastWait(Partition, Jobwise):
    """CLWL: waits as they are."""

    def __post_init__(self) -> None:
        self._backlog = Backlog()

    def place_job(
        self, view: View, tasks: Sequence[Task], task_class: TaskClass, rows: Rows
    ) -> Iterator[Action]:
        """Each task where the wait is least, those before it counted."""
        if self.is_long(tasks[0]):
            rows = self.rows_for_long(view, rows)
        return self._join(view, tasks, task_class, rows)

    def _join(self, view: View, tasks: Sequence[Task], task_class: TaskClass, rows: Rows) -> Iterator[Action]:
        return self._backlog.join_least_wait(view, tasks, task_class, rows)


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
        self._seen: dict[ClassKey, Floats] = {}  # waits at the last heartbeat, by row
        self._placed = np.zeros(0)  # what has been placed since, seconds by row
        self._asked: set[ClassKey] = set()  # what kinds that was

    def _join(self, view: View, tasks: Sequence[Task], task_class: TaskClass, rows: Rows) -> Iterator[Action]:
        slots = task_class.service_slots[rows]
        waits = self._waits_seen(view, task_class)[rows] + self._placed[rows] / slots
        for task in tasks:
            at = int(waits.argmin())
            row, seconds = int(rows[at]), expected_seconds(view, task, int(rows[at]))
            waits[at] += seconds / slots[at]
            self._placed[row] += seconds
            yield Enqueue(task, row)

    def _waits_seen(self, view: View, task_class: TaskClass) -> Floats:
        """By row, shape [capacity], without what has been placed since."""
        every = np.arange(view.cluster.capacity)
        if view.now >= self._due or len(self._placed) < len(every):
            self._due = view.now + self.heartbeat * (1.0 + view.rng.random())
            self._placed = np.zeros(len(every))
            self._backlog.refresh(view)
            self._seen = {
                kind: self._backlog.wait(view, view.classes.current(*kind), every) for kind in self._asked
            }
            self._asked.clear()
        kind = (task_class.spec, task_class.workload)
        self._asked.add(kind)
        if kind not in self._seen:
            self._seen[kind] = self._backlog.wait(view, task_class, every)
        return self._seen[kind]
