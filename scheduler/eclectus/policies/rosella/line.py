"""Node queues from which a task moves to another node that has room and ends it sooner.

This is the project's own; Peacock (Khelghatdoust, Gramoli, 2018) also moves waiting tasks away from slow
nodes. In the Rosella paper a task stays in the queue that it was sent to, even if that node turns out to be
slow or dead. Here a node that has just changed, has room and an empty queue inspects the queues of a few
other nodes and takes over a task for which

    wait there + service there > (1 + bound) * service here

where the wait follows from the task's position in that queue. Of the tasks inspected it takes the one with
the largest gain.

A task moves only to a node where it starts at once, so it moves at most once. The cost of a step is limited
by the number of queues and positions inspected, not by the number of waiting tasks. Re-planning does not need
this policy, because its tasks are not in node queues.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from eclectus.cluster.scalars import scalars
from eclectus.framework import Line, LineTraits, Reservation, View, setting
from eclectus.maths.numbers import divide

POSITIONS = 8  # of a queue, evenly spaced, that are inspected


@dataclass(eq=False)
class RosellaLine(Line):
    """First in, first out; nodes with room take over tasks that they will end sooner."""

    traits = LineTraits(first_come=True, steals=True)

    bound: float = setting(
        0.33,
        "how much sooner a task must end on another node to be moved there, in multiples of its running "
        "time there",
        why="learned rates are right within about a third; a lower bound would move tasks without gain",
        least=0,
        most=100,
    )
    looks: int = setting(
        10,
        "number of other node queues that a node with room inspects",
        why="as many as Hawk asks",
        least=1,
        most=1000,
    )

    def steal(self, view: View, row: int) -> Iterator[tuple[int, Reservation]]:
        """While there is room: of the tasks inspected, the one with the largest gain."""
        while view.node_queues:
            others = list(view.node_queues)
            if len(others) > self.looks:
                others = view.rng.sample(others, self.looks)
            found = [self._best(view, other, row) for other in others if other != row]
            _, victim, reservation = max(found, key=lambda each: each[0], default=(0.0, row, None))
            if reservation is None:
                return
            yield victim, reservation

    def _best(self, view: View, victim: int, row: int) -> tuple[float, int, Reservation | None]:
        """(gain, victim, reservation) of the task with the largest gain above the bound; None without one."""
        queue = view.node_queues[victim]
        best: tuple[float, int, Reservation | None] = (self.bound, victim, None)
        for at in range(0, len(queue), -(-len(queue) // POSITIONS)):
            gain = _gain(view, queue[at], at, victim, row)
            if gain > best[0]:
                best = (gain, victim, queue[at])
        return best


def _gain(view: View, reservation: Reservation, ahead: int, victim: int, row: int) -> float:
    """How much sooner the task ends on `row`, in multiples of its running time there.

    `ahead`: tasks before it in the victim's queue. -inf if it cannot start on `row` now.
    """
    task_class = view.classes.current(*reservation.class_key)
    rate = scalars(view.learn.speeds(task_class.workload).rate)
    if not reservation.is_tentative or not task_class.fits_now[row] or not rate[row] > 0:
        return -inf
    pace = task_class.scalars.service_slots[victim] * rate[victim]
    there = divide(ahead + 1.0, pace) + divide(1.0, rate[victim])
    return there * rate[row] - 1.0
