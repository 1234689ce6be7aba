"""First in, first out: by priority, then by age. kube-scheduler's queue order (PrioritySort).

As an Order: higher `spec.priority` first, then the earlier creation, then the earlier entry into the
queue. A pod that was refused keeps its rank: its age is its creation, which a restart does not reset.
As a Line: whoever joined first starts first, and if it does not fit the node keeps room for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from eclectus.framework import Line, Order, View
from eclectus.model.objects import Task
from eclectus.model.reservation import Reservation


@dataclass(frozen=True)
class FifoOrder(Order):
    """Priority, then age."""

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Smallest first."""
        return (-task.priority, task.created, serial)


@dataclass(frozen=True)
class FifoLine(Line):
    """Order of joining."""

    first_come: ClassVar[bool] = True

    def next(self, view: View, row: int, line: Sequence[Reservation]) -> Reservation | None:
        """The first."""
        return line[0]
