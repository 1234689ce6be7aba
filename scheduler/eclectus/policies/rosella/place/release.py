"""How fast the tasks on each node end, by what they are.

The wait for a busy node is that until tasks there have ended, and these may be of other classes than the task
that asks: a task of 5 seconds that reckoned by its own rate would believe that one of 60 seconds ends in 5.
The rate of a node is the mean of the rates of its tasks, each weighted with the share of the node that it
holds; services, which do not end, are not counted.

A node is reckoned again when what it holds changes, and some in turn whenever all speeds have a new epoch,
because reading all tasks of a large cluster would take longer than a decision may. Where many nodes change at
once (a start, a measurement of all loads), the others follow in the next steps, and until then keep the rate
that was known: of a new node none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

import numpy as np

from eclectus.cluster.scalars import read_only
from eclectus.framework import Floats, View

ROWS_IN_TURN = 64
ROWS_MOST = 512  # that one step reckons of those that are behind: about ten milliseconds


class ReleaseRates:
    """Rates by row. `version` changes with rates of rows that the change logs did not name in this step."""

    def __init__(self) -> None:
        self._rate: Floats = np.zeros(0)
        self._published = read_only(self._rate)
        self._shape_cursor = self._usage_cursor = self._held_cursor = self._epoch = -1
        self._epoch_of: dict[int, int] = {}  # of the speeds with which each row was reckoned
        self._next = 0
        self._behind: dict[int, None] = {}  # rows that have changed and are still to be reckoned
        self._view: View | None = None  # in which the last of them were
        self.version = 0

    def refresh(self, view: View, epoch: int) -> Floats:
        """The mean rate of what runs on each row, tasks a second; 0 where nothing does; shape [capacity]."""
        cluster = view.cluster
        shape, usage = cluster.shape.head, cluster.usage.head
        if (shape, usage, epoch) != (self._shape_cursor, self._usage_cursor, self._epoch):
            is_new, self._epoch = epoch != self._epoch, epoch
            self._follow(view, self._changed(view))
            if is_new:
                self._update(view, self._in_turn(len(cluster.names)))
            self._shape_cursor, self._usage_cursor, self._held_cursor = shape, usage, cluster.held.head
        if self._behind and view is not self._view:
            self._catch_up(view)
        return self._published

    def _changed(self, view: View) -> Collection[int]:
        """The rows that have changed since the last time; all of them where the logs do not reach back.

        What is only tentative changes nothing, unless the speeds have a new epoch.
        """
        cluster, epoch, epoch_of = view.cluster, self._epoch, self._epoch_of
        reshaped, used = cluster.shape.since(self._shape_cursor), cluster.usage.since(self._usage_cursor)
        held = cluster.held.since(self._held_cursor)
        if reshaped is None or used is None or held is None:
            return range(len(cluster.names))
        return {*reshaped, *held, *(row for row in used if epoch_of.get(row) != epoch)}

    def _follow(self, view: View, changed: Collection[int]) -> None:
        """Reckon these rows, or note that they are behind if they are too many for a step."""
        missing = view.cluster.capacity - len(self._rate)
        if missing > 0:
            self._rate = np.pad(self._rate, (0, missing))
            self._published = read_only(self._rate)
        if len(changed) > ROWS_MOST:
            self._behind.update(dict.fromkeys(changed))
        else:
            self._update(view, changed)

    def _catch_up(self, view: View) -> None:
        """Reckon some of the rows that are behind, once in a step."""
        self._view = view
        rows = list(islice(self._behind, ROWS_MOST))
        self._update(view, rows)
        for row in rows:
            del self._behind[row]
        self.version += 1

    def _in_turn(self, rows: int) -> Iterable[int]:
        first, self._next = self._next, self._next + ROWS_IN_TURN
        if self._next >= rows:
            self._next = 0
        return range(first, min(first + ROWS_IN_TURN, rows))

    def _update(self, view: View, rows: Iterable[int]) -> None:
        for row in rows:
            self._rate[row] = _mean_rate(view, row)
            self._epoch_of[row] = self._epoch


def _mean_rate(view: View, row: int) -> float:
    """The mean rate of the tasks on the row, each weighted with the largest share it holds of a resource."""
    cluster, total, weights = view.cluster, 0.0, 0.0
    allocatable = cluster.allocatable[row].tolist()
    for task, _ in view.placed_pods(row):
        if task.spec.long_running:
            continue
        share = max(
            (
                amount / allocatable[column]
                for column, amount in cluster.held_parts(task)
                if allocatable[column]
            ),
            default=0.0,
        )
        total += share * view.learn.speeds(task.workload).rate.item(row)
        weights += share
    return total / weights if weights else 0.0
