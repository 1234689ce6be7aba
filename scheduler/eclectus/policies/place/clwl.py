"""Least estimated wait: computed centrally (CLWL), or from periodically updated information (DLWL).

CLWL and DLWL are the centralized and the distributed baseline in Delgado, Didona, Dinu, Zwaenepoel,
"Job-aware Scheduling in Eagle", SoCC 2016. Each task joins the queue of the node with the least estimated
wait: the sum of the estimates of the tasks there, less the time that running tasks have run. Short jobs may
use all nodes, long ones the long partition. DLWL, which stands for Yaq-d in the paper, updates the waits at
each heartbeat only; in between it adds what it has placed and does not see tasks end.

Departures:
- a task is long by its own estimate, and short without one; in the paper a job is, by the mean of its tasks;
- one heartbeat updates all nodes; its jitter is uniform, not a whole number of seconds;
- the wait for a class of tasks that was not placed since the last heartbeat is computed when such a task
  arrives, so that waits are kept only for classes in use;
- on a node of several slots the work is divided evenly by all slots.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eclectus.framework import Action, ClassKey, Enqueue, Floats, Rows, TaskClass, View, setting
from eclectus.policies.shared import Backlog, ByJob, Partition, Tasks, expected_seconds


@dataclass(eq=False)
class CentralLeastWait(Partition, ByJob):
    """The node queue of least estimated wait (CLWL)."""

    def __post_init__(self) -> None:
        self._backlog = Backlog()

    def place_job(self, view: View, tasks: Tasks, task_class: TaskClass, rows: Rows) -> Iterator[Action]:
        """Each task at the node of least wait, earlier tasks of the job included."""
        if self.is_long(tasks[0]):
            rows = self.rows_for_long(view, rows)
        return self._join(view, tasks, task_class, rows)

    def _join(self, view: View, tasks: Tasks, task_class: TaskClass, rows: Rows) -> Iterator[Action]:
        return self._backlog.join_least_wait(view, tasks, task_class, rows)


@dataclass(eq=False)
class DistributedLeastWait(CentralLeastWait):
    """The node queue of least estimated wait, as of the last heartbeat (DLWL)."""

    heartbeat: float = setting(
        8.0,
        "time between two updates of the estimated waits; a random time of up to as much is added",
        unit="s",
        why="as in the published example",
        least=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._due = -np.inf  # the next heartbeat, seconds
        self._known: dict[ClassKey, Floats] = {}  # waits at the last heartbeat, by row
        self._placed = np.zeros(0)  # work placed since then, seconds by row
        self._classes: set[ClassKey] = set()  # classes placed since then

    def _join(self, view: View, tasks: Tasks, task_class: TaskClass, rows: Rows) -> Iterator[Action]:
        slots = task_class.service_slots[rows]
        waits = self._known_waits(view, task_class)[rows] + self._placed[rows] / slots
        for task in tasks:
            at = int(waits.argmin())
            row, seconds = int(rows[at]), expected_seconds(view, task, int(rows[at]))
            waits[at] += seconds / slots[at]
            self._placed[row] += seconds
            yield Enqueue(task, row)

    def _known_waits(self, view: View, task_class: TaskClass) -> Floats:
        """Waits at the last heartbeat by row, shape [capacity]."""
        every = np.arange(view.cluster.capacity)
        if view.now >= self._due or len(self._placed) < len(every):
            self._due = view.now + self.heartbeat * (1.0 + view.rng.random())
            self._placed = np.zeros(len(every))
            self._backlog.refresh(view)
            classes = {key: view.classes.current(*key) for key in self._classes}
            self._known = {key: self._backlog.wait(view, each, every) for key, each in classes.items()}
            self._classes.clear()
        key = (task_class.spec, task_class.workload)
        self._classes.add(key)
        if key not in self._known:
            self._known[key] = self._backlog.wait(view, task_class, every)
        return self._known[key]
