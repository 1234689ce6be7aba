"""One profile's turns in one round: the Order names lanes, the walk hands out their heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eclectus.engine.class_queues import SortedClassQueue
from eclectus.engine.state import State
from eclectus.framework import ClassQueue, Hold, Order, PendingTasks, Profile
from eclectus.model.objects import Task

_NO_MORE: Any = object()


class SchedulingCycle(PendingTasks):
    """An iterator over waiting tasks that a Place policy pulls from, one, all, or one of each lane.

    Each task is offered once a round. What the Hold policy keeps back is passed over, and until when stands
    in `State.held`. An Order that fails ends the walk; a Hold that fails costs its task.
    """

    __slots__ = ("_only", "_order", "_profile", "_queues", "_reopened", "_state", "offered", "refused")

    def __init__(self, profile: Profile, state: State, lanes: Sequence[SortedClassQueue]) -> None:
        self._profile, self._state = profile, state
        self._queues = lanes
        self._order: Iterator[ClassQueue] | None = None
        # The single lane of an Order that goes by keys: nobody need be asked whose turn it is.
        self._only = (
            lanes[0]
            if len(lanes) == 1 and type(profile.order).queues_in_order is Order.queues_in_order
            else None
        )
        self._reopened: list[SortedClassQueue] | None = (
            None  # by one_each: whose task at hand has been answered
        )
        self.offered: dict[
            str, tuple[Task, SortedClassQueue]
        ] = {}  # uid -> what has been offered and not answered
        self.refused: dict[str, tuple[Task, SortedClassQueue]] = {}  # uid -> the head a lane was parked with

    def __iter__(self) -> Iterator[Task]:
        return iter(self._next_task, None)  # which ends without the price of an exception

    def __next__(self) -> Task:
        task = self._next_task()
        if task is None:
            raise StopIteration
        return task

    def _next_task(self) -> Task | None:
        hold, lane = self._profile.hold, self._only
        if lane is None:
            lane = self._next_queue()
        while lane is not None:
            task = lane.take()
            if task is not None and (hold is None or self._is_released(hold, task)):
                self.offered[task.uid] = (task, lane)
                if self._reopened is not None:
                    lane.block(True)
                return task
            lane = self._next_queue()
        return None

    def one_per_queue(self) -> None:
        """A lane's next task comes when the one at hand has been answered."""
        if self._reopened is None:
            self._reopened = []

    def skip(self, task: Task, most: int) -> int:
        """Those who come next in the lane of a task that waits are not offered in this round."""
        lane = self._state.class_queues.queue_of(task.uid)
        return lane.skip(most) if lane is not None else 0

    # -- answers ---------------------------------------------------------------------------------

    def remove(self, task: Task) -> None:
        """The task waits in its lane no more."""
        uid, state = task.uid, self._state
        self._answered(uid)
        state.class_queues.remove_in_cycle(uid)
        state.deferrals.discard(uid)

    def keep(self, task: Task) -> None:
        """The task waits on for a plan of this round, so its lane is looked at in the next."""
        _, lane = self._answered(task.uid)
        lane.activate()

    def fail(self, task: Task, message: str) -> None:
        """A policy failed on the task: it backs off."""
        self.remove(task)
        self._state.back_off(task, "SchedulerError", message)

    def _answered(self, uid: str) -> tuple[Task, SortedClassQueue]:
        if self.refused:
            self.refused.pop(uid, None)
        at_hand = self.offered.pop(uid)
        if self._reopened is not None:
            at_hand[1].block(False)
            self._reopened.append(at_hand[1])
        return at_hand

    # -- turns -----------------------------------------------------------------------------------

    def _next_queue(self) -> SortedClassQueue | None:
        if self._only is not None:
            return self._only if self._only.head is not None else None
        try:
            if self._order is None:
                self._order = iter(self._profile.order.queues_in_order(self._state.view, self._queues))
            lane = next(self._order, _NO_MORE)
            if isinstance(lane, SortedClassQueue):
                return lane
            problem = f"Order.turns must yield the lanes it was given, not {lane!r}"
        except Exception as error:  # a plug-in's defect must not stop the others
            lane, problem = None, f"{type(error).__name__}: {error}"
        if lane is not _NO_MORE:
            self._state.fault(self._profile.order, problem)
            self._order, self._reopened = iter(()), None
            return None
        if not self._reopened:
            return None
        self._queues, self._reopened, self._order = self._reopened, [], None
        return self._next_queue()

    def _is_released(self, hold: Hold, task: Task) -> bool:
        state = self._state
        try:
            until = float(hold.until(state.view, task))
        except Exception as error:  # a plug-in's defect must not stop the others
            problem = f"{type(error).__name__}: {error}"
            state.fault(hold, problem)
            state.class_queues.remove_in_cycle(task.uid)
            state.back_off(task, "SchedulerError", f"policy {type(hold).__name__} failed: {problem}")
            return False
        if not until > state.now:  # nan holds nothing
            return True
        state.held[task.uid] = until
        return False
