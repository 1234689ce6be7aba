"""A scheduling cycle in slices: what one step places is bounded, and the next step goes on where it stopped.

A class that is asked about for the first time costs O(nodes), about a millisecond on 5,000. After a start or
a change of leader thousands of classes may be pending, and as many may have been waiting for a node that has
come. In one step they would cost more seconds than a Lease lasts. So a step asks about a bounded number of
classes, those of the highest priority first, and places a bounded number of tasks. Both are counts and no
times, so equal events give equal commands. A class or task that comes while a cycle goes on belongs to the
next cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from eclectus.engine.queues.pending_class import PendingClass, PendingKey

CLASSES_MOST = 256  # classes in one step: half a second on 15,000 nodes if none was asked about before
TASKS_MOST = 2_000  # tasks that leave their queues in one step: half a second likewise

_by_priority = attrgetter("highest_priority")


class CycleSlices:
    """The classes of a cycle that are still to be asked about.

    `is_cut`: the cycle began in an earlier step, or goes on in a later one.
    """

    def __init__(self) -> None:
        self._left: list[PendingClass] = []
        self._removed = 0  # tasks that have left their queues in this step
        self.is_cut = False

    def __bool__(self) -> bool:
        """Whether a cycle goes on in the next step."""
        return bool(self._left)

    @property
    def tasks_left(self) -> int:
        """How many more tasks may leave their queues in this step."""
        return TASKS_MOST - self._removed

    def begin(self, active: Iterable[PendingClass]) -> None:
        """A new cycle over these classes."""
        self._left, self.is_cut = list(active), False
        if len(self._left) > CLASSES_MOST:
            self._left.sort(key=_by_priority, reverse=True)

    def take(self, active: Mapping[PendingKey, PendingClass]) -> list[PendingClass]:
        """The classes of this step; of those that are left the ones that are still active."""
        self._removed = 0
        if not self.is_cut and len(self._left) <= CLASSES_MOST:  # the common case
            taken, self._left = self._left, []
            return taken
        taken, self._left = self._left[:CLASSES_MOST], self._left[CLASSES_MOST:]
        self.is_cut = True
        return [pending for pending in taken if active.get(pending.key) is pending]

    def count_removed(self, tasks: int) -> None:
        """So many tasks have left their queues."""
        self._removed += tasks

    def put_back(self, classes: Iterable[PendingClass]) -> None:
        """The next step begins with these classes: too few `tasks_left` for all their tasks."""
        self._left = [*classes, *self._left]
        self.is_cut = self.is_cut or bool(self._left)

    def end_slice(self, classes: Iterable[PendingClass]) -> None:
        """These classes of a cycle that is cut have been asked about, as they are now."""
        for pending in classes:
            pending.asked_version = pending.version

    def has_joined(self, active: Iterable[PendingClass]) -> bool:
        """Whether a task has joined or left one of the active classes since it was asked about."""
        return any(pending.asked_version != pending.version for pending in active)
