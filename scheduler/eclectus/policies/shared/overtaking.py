"""Base class of Line policies in which short tasks overtake each other within limits (Eagle, SoCC 2016).

Of the reservations in a node queue the one that ranks first goes first. It may not overtake a reservation
that was already overtaken by `slack` times its own estimate. A long task at the head of the queue goes before
all others, and none overtakes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated
from weakref import WeakKeyDictionary

from eclectus.framework import Line, Reservation, Setting, View
from eclectus.policies.shared.backlog import expected_seconds
from eclectus.policies.shared.partition import CutOff

Rank = tuple[float, ...]


@dataclass(eq=False)
class OvertakingLine(CutOff, Line):
    """Short tasks in the order of their ranks, with a limit on overtaking."""

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

    @abstractmethod
    def rank(self, view: View, reservation: Reservation, remaining_seconds: float) -> Rank:
        """Rank of a reservation of short tasks, smallest first; of equal ones the first to come goes first.

        `remaining_seconds`: the estimates of its tasks that have not started.
        """

    def next(self, view: View, row: int, queue: Sequence[Reservation]) -> Reservation | None:
        """The one of least rank of those that may overtake all before them."""
        if self.is_long(queue[0].head):
            return queue[0]
        least: tuple[float, ...] = (inf,)
        slack, best = inf, 0
        for at, reservation in enumerate(queue):
            if self.is_long(reservation.head):
                continue
            seconds = expected_seconds(view, reservation.head, row)
            rank = self.rank(view, reservation, seconds * len(reservation.tasks))
            if rank < least and seconds <= slack:
                best, least = at, rank
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
