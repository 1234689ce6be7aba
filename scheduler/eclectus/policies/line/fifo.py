"""First in, first out: reservations start in the order in which they were enqueued.

If the first does not fit yet, the node keeps room for it and the others wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eclectus.framework import Line, LineTraits, Reservation, View


@dataclass(frozen=True)
class FifoLine(Line):
    """In the order in which they were enqueued."""

    traits = LineTraits(first_come=True)

    def next(self, view: View, row: int, queue: Sequence[Reservation]) -> Reservation | None:
        """The first of the node queue."""
        return queue[0]
