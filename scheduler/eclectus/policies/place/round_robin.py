"""Round robin: one node after the other, whatever they are and whatever runs there.

The oldest rule of all; no paper claims it. It spreads equal tasks over equal nodes as evenly as can be,
and knows nothing of speeds, sizes or queues. Departure: nodes that may not run the task, or with
`queue: central` have no room for it, are passed over. One turn for all work, in the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eclectus.framework import Action, Enqueue, Place, PlacePolicy, Unschedulable, View
from eclectus.model.objects import Task
from eclectus.policies.shared.queueing import Queue


@dataclass(eq=False)
class RoundRobin(PlacePolicy):
    """The next node after the last one chosen."""

    queue: Queue = "central"

    def __post_init__(self) -> None:
        self._last = -1

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        """One task, one answer."""
        for task in turns:
            task_class = view.task_class(task)
            rows = task_class.fits_now_rows if self.queue == "central" else task_class.waitable_rows
            if not len(rows):
                yield Unschedulable(task)
                continue
            at = int(np.searchsorted(rows, self._last, side="right"))
            self._last = int(rows[at % len(rows)])
            yield Place(task, self._last) if self.queue == "central" else Enqueue(task, self._last)
