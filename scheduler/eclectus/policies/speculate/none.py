"""No copies: a task that is late runs on."""

from dataclasses import dataclass

from eclectus.framework import Attempt, Speculate, Straggler, View


@dataclass(eq=False)
class NoCopies(Speculate):
    """No task gets a copy."""

    def late(self, view: View, attempt: Attempt) -> Straggler | None:
        """None is worth it."""
        return None
