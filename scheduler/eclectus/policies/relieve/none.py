"""No relief: a task that no node has room for waits until pods end."""

from collections.abc import Iterator
from dataclasses import dataclass

from eclectus.framework import Refused, ReliefAction, Relieve, View


@dataclass(eq=False)
class NoRelief(Relieve):
    """No pod makes room for another."""

    def relieve(self, view: View, refused: Refused) -> Iterator[ReliefAction]:
        """Answer nothing."""
        return iter(())
