"""Shortest remaining processing time (SRPT), with a limit on how often a job may be overtaken.

The node queues of Eagle: Delgado, Didona, Dinu, Zwaenepoel, "Job-aware Scheduling in Eagle: Divide and Stick
to Your Probes", SoCC 2016. Of the reservations in a node queue the job with the least remaining work (tasks
not started, times their estimate) goes first. It may not overtake a reservation that was already overtaken by
`slack` times its own estimate. A long task at the head of the queue goes before all others.

Departures:
- a long task overtakes nobody. In the paper it competes by the remaining work of its whole job, which a node
  queue does not know of tasks that were placed one by one. So no short task waits behind a long task that
  arrived later.
- a task without an estimate is taken to need the learned mean time of its workload on that node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated
from weakref import WeakKeyDictionary

from eclectus.framework import Line, View
from eclectus.model.reservation import Reservation
from eclectus.model.settings import Setting
from eclectus.policies.shared.backlog import expected_seconds
from eclectus.policies.shared.partition import CutOff


@dataclass(eq=False)
class ShortestRemaining(CutOff, Line):
    """Shortest remaining work first, with a limit on overtaking (SRPT of Eagle)."""

    slack: Annotated[
        float,
        Setting(
            "how much work may overtake a job in a node queue, in multiples of the job's own estimate",
            why="as in the paper",
            least=0,
        ),
    ] = 5.0

    def __post_init__(self) -> None:
        self._overtaken: WeakKeyDictionary[Reservation, defaultdict[int, float]] = WeakKeyDictionary()

    def next(self, view: View, row: int, queue: Sequence[Reservation]) -> Reservation | None:
        """The one with the least remaining work of those that may overtake all before them."""
        if self.is_long(queue[0].head):
            return queue[0]
        slack, best, least = inf, 0, inf
        for at, reservation in enumerate(queue):
            if self.is_long(reservation.head):
                continue
            seconds = expected_seconds(view, reservation.head, row)
            remaining = seconds * len(reservation.tasks)
            if remaining < least and seconds <= slack:
                best, least = at, remaining
            slack = min(slack, self.slack * seconds - self._overtaken_by(reservation, row))
        if view.task_class(queue[best].head).fits_beside_held(row):
            self._count(queue[:best], row, expected_seconds(view, queue[best].head, row))
        return queue[best]

    def _count(self, overtaken: Sequence[Reservation], row: int, seconds: float) -> None:
        for reservation in dict.fromkeys(overtaken):  # one that is queued twice is overtaken once
            self._overtaken.setdefault(reservation, defaultdict(float))[row] += seconds

    def _overtaken_by(self, reservation: Reservation, row: int) -> float:
        """Seconds of work that have overtaken the reservation in this node queue."""
        return self._overtaken[reservation][row] if reservation in self._overtaken else 0.0
