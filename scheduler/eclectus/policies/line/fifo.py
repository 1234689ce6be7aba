"""First in, first out: reservations start in the order in which they were enqueued.

If the first does not fit yet, the node keeps room for it and the others wait.
"""

from dataclasses import dataclass

from eclectus.framework import Line, LineTraits


@dataclass(frozen=True)
class FifoLine(Line):
    """In the order in which they were enqueued."""

    traits = LineTraits(first_come=True)
