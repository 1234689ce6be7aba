"""One scheduling cycle of one profile: the Order names class queues, their heads are offered to Place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eclectus.engine.queues.class_queues import SortedClassQueue
from eclectus.engine.state import State
from eclectus.framework import ClassQueue, Order, PendingTasks, Profile
from eclectus.model.objects import Task

_NO_MORE: Any = object()


class SchedulingCycle(PendingTasks):
    """The iterator over pending tasks that a Place policy pulls from.

    Each task is offered once a cycle. An Order that fails ends the cycle.
    `offered`: uid -> the task and its queue, offered and not answered yet.
    """

    __slots__ = ("_only", "_order", "_profile", "_queues", "_reopened", "_state", "offered")

    def __init__(self, profile: Profile, state: State, queues: Sequence[SortedClassQueue]) -> None:
        self._profile, self._state, self._queues = profile, state, queues
        self._order: Iterator[ClassQueue] | None = None
        # The single queue of an Order that goes by keys: the Order need not be asked.
        by_key = type(profile.order).queues_in_order is Order.queues_in_order
        self._only = queues[0] if len(queues) == 1 and by_key else None
        # After `one_per_queue`: the queues whose offered task has been answered.
        self._reopened: list[SortedClassQueue] | None = None
        self.offered: dict[str, tuple[Task, SortedClassQueue]] = {}

    def __iter__(self) -> Iterator[Task]:
        return iter(self._next_task, None)  # ends without the cost of an exception

    def __next__(self) -> Task:
        task = self._next_task()
        if task is None:
            raise StopIteration
        return task

    def _next_task(self) -> Task | None:
        queue = self._only
        if queue is None:
            queue = self._next_queue()
        while queue is not None:
            task = queue.take()
            if task is not None:
                self.offered[task.uid] = (task, queue)
                if self._reopened is not None:
                    queue.block(True)
                return task
            queue = self._next_queue()
        return None

    def one_per_queue(self) -> None:
        """Offer a queue's next task only when its last offered task has been answered."""
        if self._reopened is None:
            self._reopened = []

    def skip(self, task: Task, most: int) -> int:
        """Do not offer the next tasks in the queue of this pending task in this cycle."""
        queue = self._state.class_queues.queue_of(task.uid)
        return queue.skip(most) if queue is not None else 0

    # -- answers ---------------------------------------------------------------------------------

    def remove(self, task: Task) -> None:
        """The task was answered and leaves its class queue."""
        uid, state = task.uid, self._state
        self._answered(uid)
        state.class_queues.remove_in_cycle(uid)
        state.deferrals.discard(uid)

    def keep(self, task: Task) -> None:
        """The task was deferred: it stays in its class queue, which stays active."""
        self._state.class_queues.activate(self._answered(task.uid))

    def fail(self, task: Task, message: str) -> None:
        """A policy failed on the task: it backs off."""
        self.remove(task)
        self._state.back_off(task, "SchedulerError", message)

    def mark_unschedulable(self, task: Task, message: str) -> None:
        """No node for the task's class now: its whole queue is unschedulable until the cluster changes."""
        state, queue = self._state, self.offered.pop(task.uid)[1]
        if queue.unschedulable_since is not None:
            return  # an earlier task of this cycle has marked it: who takes all tasks may answer each
        never_feasible = not state.view.task_class(task).feasible_count
        if never_feasible:
            for waiting in queue:
                state.reports.expedite(waiting.uid, state.now)
        state.class_queues.mark_unschedulable(queue, state.now, never=never_feasible, message=message)
        state.count_attempts("unschedulable", task.profile, len(queue) - queue.placed)
        state.refused(queue.profile, queue.class_key)

    def _answered(self, uid: str) -> SortedClassQueue:
        queue = self.offered.pop(uid)[1]
        if self._reopened is not None:
            queue.block(False)
            self._reopened.append(queue)
        return queue

    # -- order -----------------------------------------------------------------------------------

    def _next_queue(self) -> SortedClassQueue | None:
        if self._only is not None:
            return self._only if self._only.head is not None else None
        try:
            if self._order is None:
                self._order = iter(self._profile.order.queues_in_order(self._state.view, self._queues))
            queue = next(self._order, _NO_MORE)
            if isinstance(queue, SortedClassQueue):
                return queue
            problem = f"Order.queues_in_order must yield the queues it was given, not {queue!r}"
        except Exception as error:  # a plug-in's defect must not stop the others
            queue, problem = None, f"{type(error).__name__}: {error}"
        if queue is not _NO_MORE:
            self._state.fault(self._profile.order, problem)
            self._order, self._reopened = iter(()), None
            return None
        if not self._reopened:
            return None
        self._queues, self._reopened, self._order = self._reopened, [], None
        return self._next_queue()
