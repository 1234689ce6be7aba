"""A scheduling cycle in slices: what one step asks and places is bounded, and the next step goes on.

A class that is asked about for the first time costs O(nodes), about a millisecond on 5,000. After a start or
a change of leader thousands of classes may be pending, and as many may have been waiting for a node that has
come. In one step they would cost more seconds than a Lease lasts. So a step asks about a bounded number of
classes and places a bounded number of tasks, as they come in the Order's order, and the next step goes on in
that order with what is left of the same classes. Both are counts and no times, so equal events give equal
commands. A class that comes while a cycle goes on belongs to the next cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from eclectus.engine.queues.pending_class import PendingClass, PendingKey

CLASSES_MOST = 256  # classes in one step: half a second on 15,000 nodes if none was asked about before
TASKS_MOST = 2_000  # tasks that leave their queues in one step: half a second likewise


class Allowance(NamedTuple):
    """What the cycle of one profile may still do in this step."""

    tasks: int  # that leave their queues
    classes: int  # that are asked about for the first time in the cycle
    cycle: int  # the serial of the cycle
    is_resumed: bool = False  # whether an earlier step has begun the cycle


class CycleSlices:
    """The classes of a cycle with tasks that are still to be offered.

    `is_cut`: the cycle began in an earlier step, or goes on in a later one.
    """

    def __init__(self) -> None:
        self._left: list[PendingClass] = []
        self._serial = 0  # of the cycle
        self._tasks = 0  # that have left their queues in this step
        self._classes = 0  # that were asked about in this step for the first time
        self._is_resumed = False
        self.is_cut = False

    def __bool__(self) -> bool:
        """Whether a cycle goes on in the next step."""
        return bool(self._left)

    @property
    def allowance(self) -> Allowance:
        """What the next profile may still do in this step."""
        tasks, classes = TASKS_MOST - self._tasks, CLASSES_MOST - self._classes
        return Allowance(tasks, classes, self._serial, self._is_resumed)

    def begin(self, active: Iterable[PendingClass]) -> None:
        """Begin a new cycle over these classes."""
        self._left = list(active)
        self._serial += 1
        self.is_cut = False

    def take(self, active: Mapping[PendingKey, PendingClass]) -> list[PendingClass]:
        """Begin a step; returns the classes that are left of the cycle and still active."""
        self._tasks = self._classes = 0
        self._is_resumed = self.is_cut
        taken, self._left = self._left, []
        return [each for each in taken if active.get(each.key) is each] if self.is_cut else taken

    def count(self, tasks: int, classes: int) -> None:
        """Count tasks that have left their queues, and classes that were asked about."""
        self._tasks += tasks
        self._classes += classes

    def put_back(self, classes: Iterable[PendingClass]) -> None:
        """Leave these classes, which have tasks that were not offered, to the next step."""
        self._left += classes
        self.is_cut = self.is_cut or bool(self._left)

    def end_slice(self, classes: Iterable[PendingClass]) -> None:
        """Note of the classes of a cycle that is cut which of their tasks it has considered."""
        for pending in classes:
            pending.asked_version = pending.version

    def has_joined(self, active: Iterable[PendingClass]) -> bool:
        """Whether a task has joined or left one of the active classes since it was asked about."""
        return any(pending.asked_version != pending.version for pending in active)
