"""No waiting for data: a task starts where its Place policy says, wherever its data are."""

from dataclasses import dataclass

from eclectus.framework import Hold, Reach, Task, View, Waited


@dataclass(eq=False)
class NoHold(Hold):
    """Every task may go to any node at once."""

    def reach(self, view: View, head: Task, waited: Waited) -> Reach:
        """Any node."""
        return Reach(level=1)
