"""Round robin: one node after the other.

It has no single source. It spreads equal tasks evenly over equal nodes and uses neither speeds, nor task
sizes, nor queue lengths. Departure from the plain rule: nodes that may not run the task are skipped, and with
`queue: central` nodes without room too. All classes of tasks share one position, in the order of the rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eclectus.framework import Action, Bind, Enqueue, Place, PlaceTraits, Task, Unschedulable, View, setting
from eclectus.policies.shared import QUEUE, TRAITS_BY_QUEUE, Queue


@dataclass(eq=False)
class RoundRobin(Place):
    """The next node after the last one chosen."""

    queue: Queue = setting("central", QUEUE)

    def __post_init__(self) -> None:
        self._last = -1

    @property
    def traits(self) -> PlaceTraits:
        """It joins node queues with `queue: lines`."""
        return TRAITS_BY_QUEUE[self.queue]

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        """Place or enqueue each task at the next suitable node."""
        for task in pending:
            task_class = view.task_class(task)
            rows = task_class.fits_now_rows if self.queue == "central" else task_class.waitable_rows
            if not len(rows):
                yield Unschedulable(task)
                continue
            at = int(np.searchsorted(rows, self._last, side="right"))
            self._last = int(rows[at % len(rows)])
            yield Bind(task, self._last) if self.queue == "central" else Enqueue(task, self._last)
