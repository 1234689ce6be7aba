"""What another wheel installs: policies and, in `lowest_name-1.2.dist-info`, their entry points."""

from collections.abc import Iterator
from dataclasses import dataclass

from eclectus.framework import (
    Action,
    Bind,
    Order,
    OrderTraits,
    PendingTasks,
    Place,
    Task,
    Unschedulable,
    View,
    setting,
)


@dataclass(frozen=True)
class LowestName(Place):
    """The node with the lowest name, among those with room."""

    from_the_end: bool = setting(False, "the highest name instead", why="names have an order")

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        names = view.cluster.names
        for task in pending:
            rows = sorted(view.task_class(task).fits_now.nonzero()[0], key=lambda row: names[row])
            if rows:
                yield Bind(task, int(rows[-1 if self.from_the_end else 0]))
            else:
                yield Unschedulable(task)


@dataclass(frozen=True)
class Unfinished(Place):
    """It cannot place a task."""


@dataclass(frozen=True)
class ByName(Order):
    """It ranks and says that it does not."""

    traits = OrderTraits(ranks_groups=False)

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        return (task.created, serial)

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...]:
        return (float(len(head.name)),)


class Undescribed:
    """No policy at all."""
