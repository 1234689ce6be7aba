"""The scheduling cycle of one gang: its pods are offered to Place one by one, and none waits for a node.

Place need not know of gangs. A pod that it defers, or for which it finds no node, is left out; the others may
still be enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from eclectus.engine.cycle_slices import Allowance
from eclectus.engine.gangs.transaction import Transaction
from eclectus.engine.queues.class_queues import ClassQueues
from eclectus.engine.scheduling_cycle import SchedulingCycle
from eclectus.engine.state import State
from eclectus.framework import Order, Profile
from eclectus.model.grant import Grant
from eclectus.model.objects import Task


class _MemberOrder(Order):
    """The order in which the pods of a gang are given. Its turn has come, so no other Order is asked."""

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Tasks of a higher priority first."""
        return (-task.priority, serial)


class LeftOut(NamedTuple):
    """A pod that got no node, and what the policy said of it."""

    task: Task
    message: str


class GangCycle(SchedulingCycle):
    """Ends when so many pods are placed as are needed, or too few are left.

    `left_out`: the first pod without a node.
    """

    __slots__ = ("_transaction", "left_out")

    def __init__(
        self, profile: Profile, state: State, members: Sequence[Task], needed: int, transaction: Transaction
    ) -> None:
        ordered = replace(profile, order=_MemberOrder())
        queues = ClassQueues(state.view.classes, [ordered])
        for task in members:
            queues.add(task, ordered.order)
        allowance = Allowance(tasks=needed, classes=len(members), cycle=1)
        super().__init__(ordered, state, list(queues.active.values()), allowance, queues)
        self._transaction = transaction
        self.left_out: LeftOut | None = None

    @property
    def can_succeed(self) -> bool:
        """Whether enough pods are placed, or still to be answered."""
        open_classes = (pending for pending in self._classes if pending.has_more)
        left = sum(pending.count + pending.answered - pending.passed for pending in open_classes)
        return self.removed + left + len(self.offered) >= self._allowance.tasks

    def place(self, task: Task, row: int, grant: Grant) -> None:
        """The task is placed in the transaction."""
        self.remove(task)
        self._transaction.place(task, row, grant)

    def defer(self, task: Task, row: int | None, until: float) -> None:
        """The task is left out."""
        del row, until
        self.offered.pop(task.uid)
        self._leave_out(task, "waiting for another node than those with room")

    def mark_unschedulable(self, task: Task, message: str) -> None:
        """The task is left out, and no other one of its class is offered."""
        self.offered.pop(task.uid).pending.is_closed = True
        self._leave_out(task, message)

    def _leave_out(self, task: Task, message: str) -> None:
        if self.left_out is None:
            self.left_out = LeftOut(task, message)
