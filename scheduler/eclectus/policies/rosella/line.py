"""Lines mended: a task that waits for one node goes to another that has room and ends it sooner.

Project's own; Peacock (2018) likewise moves waiting work off slow nodes. In the paper a task stays in
the line that it was sent to, also where that node is found to be slow, or dead. Here a node that has
changed, has room and no line looks at a few lines of others and takes over a task for which

    wait there + service there > (1 + bound) * service here

where the wait goes by the task's place in that line. Of those found it takes the one that gains most.

A task moves only to where it starts at once, so it moves once: nothing is handed to and fro. A look costs
what it looks at, however many wait. Re-planning needs none of this: its tasks stand in no line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated

from eclectus.cluster.scalars import cells
from eclectus.framework import Line, View
from eclectus.maths.numbers import divide
from eclectus.model.reservation import Reservation
from eclectus.model.settings import Setting

POSITIONS = 8  # of one line, evenly spaced, that are looked at


@dataclass(eq=False)
class RosellaLine(Line):
    """Order of joining; and nodes with room take over tasks that they will end sooner."""

    bound: Annotated[
        float,
        Setting(
            "how much sooner a task must end elsewhere before it goes there, in times it runs there",
            why="rates are right within about a third; less would move tasks for nothing",
            least=0,
            most=100,
        ),
    ] = 0.33
    looks: Annotated[
        int,
        Setting(
            "lines of others that a node with room looks at", why="as many as Hawk's", least=1, most=1000
        ),
    ] = 10

    def next(self, view: View, row: int, line: Sequence[Reservation]) -> Reservation | None:
        """The first."""
        return line[0]

    def steal(self, view: View, row: int) -> Iterator[tuple[int, Reservation]]:
        """As long as there is room, the task that gains most of those looked at."""
        while view.node_queues:
            others = list(view.node_queues)
            if len(others) > self.looks:
                others = view.rng.sample(others, self.looks)
            found = [self._best(view, other, row) for other in others if other != row]
            _, victim, claim = max(found, key=lambda each: each[0], default=(0.0, row, None))
            if claim is None:
                return
            yield victim, claim

    def _best(self, view: View, victim: int, row: int) -> tuple[float, int, Reservation | None]:
        """The task of this line that gains most on `row`, and how many times its running there."""
        line = view.node_queues[victim]
        best: tuple[float, int, Reservation | None] = (self.bound, victim, None)
        for at in range(0, len(line), -(-len(line) // POSITIONS)):
            gain = _gain(view, line[at], at, victim, row)
            if gain > best[0]:
                best = (gain, victim, line[at])
        return best


def _gain(view: View, claim: Reservation, ahead: int, victim: int, row: int) -> float:
    """How much sooner it ends on `row`, in times that it runs there; -inf where it does not start now."""
    task_class = view.classes.of(*claim.class_key)
    rate = cells(view.learn.speeds(task_class.workload).rate)
    if not claim.is_tentative or not task_class.fits_now[row] or not rate[row] > 0:
        return -inf
    pace = task_class.scalars.service_slots[victim] * rate[victim]
    there = divide(ahead + 1.0, pace) + divide(1.0, rate[victim])
    return there * rate[row] - 1.0
