"""A transaction: pods are placed one after another, and none of it is sent before all of it is.

What is assumed counts at once in the arrays, in accounts and for volumes, so that every later question is
answered beside it. Abandoned, nothing was sent, and the state is what it was: what is reported of a pod, how
long it waits and what has begun changes only with `commit`.
"""

from __future__ import annotations

from eclectus.engine.binding.binds import AssumedBind
from eclectus.engine.state import State
from eclectus.model.grant import NO_GRANT, Grant
from eclectus.model.objects import Task


class Transaction:
    """Begins when it is made; ends, in the same step, with `commit` or `abandon`."""

    def __init__(self, state: State) -> None:
        self._state, self._random = state, state.view.rng.getstate()
        self._assumed: list[AssumedBind] = []

    def __len__(self) -> int:
        """How many pods are placed in it."""
        return len(self._assumed)

    def place(self, task: Task, row: int, grant: Grant = NO_GRANT) -> None:
        """Count a pod for which no room is held as placed on this row."""
        self._assumed.append(self._state.assume(task, row, grant))

    def commit(self) -> list[Task]:
        """Bind the pods; which they are."""
        for assumed in self._assumed:
            self._state.send(assumed)
        return [assumed.task for assumed in self._assumed]

    def abandon(self) -> None:
        """Place none of them. What was drawn at random is drawn again."""
        for assumed in reversed(self._assumed):
            self._state.undo(assumed)
        self._state.view.rng.setstate(self._random)
