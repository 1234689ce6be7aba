"""One node with one slot and a node queue: jobs that wait there, and who overtakes whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from builders import make_engine, make_task
from eclectus.framework import Action, Line, Place, ReserveMany, View
from eclectus.model.objects import Reservation, Task
from eclectus.policies.shared import OvertakingLine, group_by_job
from worlds import World, small_world

LONG = 200.0  # seconds, above the default cut-off of 90


@dataclass
class Reserving(Place):
    """Every job has `reservations` reservations at the only node."""

    reservations: int = 1
    sticky: bool = False

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        for tasks in group_by_job(pending):
            yield ReserveMany(tasks, (0,) * self.reservations, self.sticky)


class CountingLine(OvertakingLine):
    """Counts independently by how much work each short reservation has been overtaken; mixed into a line."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.overtaken: dict[Reservation, float] = {}  # seconds
        self.worst = 0.0  # the maximum, in multiples of the reservation's own estimate

    def next(self, view: View, row: int, queue: Sequence[Reservation]) -> Reservation | None:
        chosen = super().next(view, row, queue)
        assert chosen is not None
        for reservation in set(queue[: queue.index(chosen)]):
            if not self.is_long(reservation.head):
                self.overtaken[reservation] = self.overtaken.get(reservation, 0.0) + estimate(chosen)
                self.worst = max(self.worst, self.overtaken[reservation] / estimate(reservation))
        return chosen


def estimate(reservation: Reservation) -> float:
    """The estimate of its tasks, seconds."""
    assert reservation.head.estimate is not None
    return reservation.head.estimate


def one_server(line: Line, place: Place | None = None) -> World:
    """A node with one slot, which is in use."""
    world = small_world(make_engine(place or Reserving(), line=line), cpu=1)
    world.put(make_task("busy", node="n0"))
    return world


def job(name: str, seconds: float, count: int = 1, workload: str = "") -> list[Task]:
    """The tasks of one job, each with this estimate."""
    return [
        make_task(f"{name}{at}", created=at, estimate=seconds, job=name, workload=workload)
        for at in range(count)
    ]


def served(world: World, most: int = 1000) -> list[str]:
    """First letters of the jobs, in the order in which the node starts their tasks."""
    order = []
    while len(order) < most and (placed := world.placed()):
        (running,) = placed
        world.end(running)
        order += [name[0] for name in world.placed()]
    return order
