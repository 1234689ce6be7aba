"""One profile's turns in one round: the Order names lanes, the walk hands out their heads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eclectus.engine.class_queues import TaskLane
from eclectus.engine.state import State
from eclectus.framework import Hold, Lane, Order, Profile, Turns
from eclectus.model.objects import Task

_NO_MORE: Any = object()


class Walk(Turns):
    """An iterator over waiting tasks that a Place policy pulls from, one, all, or one of each lane.

    Each task is offered once a round. What the Hold policy keeps back is passed over, and until when stands
    in `State.held`. An Order that fails ends the walk; a Hold that fails costs its task.
    """

    __slots__ = ("_lanes", "_only", "_profile", "_reopened", "_state", "_turns", "offered", "refused")

    def __init__(self, profile: Profile, state: State, lanes: Sequence[TaskLane]) -> None:
        self._profile, self._state = profile, state
        self._lanes = lanes
        self._turns: Iterator[Lane] | None = None
        # The single lane of an Order that goes by keys: nobody need be asked whose turn it is.
        self._only = lanes[0] if len(lanes) == 1 and type(profile.order).turns is Order.turns else None
        self._reopened: list[TaskLane] | None = None  # by one_each: whose task at hand has been answered
        self.offered: dict[str, tuple[Task, TaskLane]] = {}  # uid -> what has been offered and not answered
        self.refused: dict[str, tuple[Task, TaskLane]] = {}  # uid -> the head a lane was parked with

    def __iter__(self) -> Iterator[Task]:
        return iter(self._pull, None)  # which ends without the price of an exception

    def __next__(self) -> Task:
        task = self._pull()
        if task is None:
            raise StopIteration
        return task

    def _pull(self) -> Task | None:
        hold, lane = self._profile.hold, self._only
        if lane is None:
            lane = self._next_lane()
        while lane is not None:
            task = lane.take()
            if task is not None and (hold is None or self._let_go(hold, task)):
                self.offered[task.uid] = (task, lane)
                if self._reopened is not None:
                    lane.shut(True)
                return task
            lane = self._next_lane()
        return None

    def one_each(self) -> None:
        """A lane's next task comes when the one at hand has been answered."""
        if self._reopened is None:
            self._reopened = []

    def pass_over(self, task: Task, most: int) -> int:
        """Those who come next in the lane of a task that waits are not offered in this round."""
        lane = self._state.lanes.lane_of(task.uid)
        return lane.pass_over(most) if lane is not None else 0

    # -- answers ---------------------------------------------------------------------------------

    def leave(self, task: Task) -> None:
        """The task waits in its lane no more."""
        uid, state = task.uid, self._state
        self._answered(uid)
        state.lanes.leave(uid)
        state.plans.withdraw(uid)

    def wait(self, task: Task) -> None:
        """The task waits on for a plan of this round, so its lane is looked at in the next."""
        _, lane = self._answered(task.uid)
        lane.wake()

    def fail(self, task: Task, message: str) -> None:
        """A policy failed on the task: it backs off."""
        self.leave(task)
        self._state.back_off(task, "SchedulerError", message)

    def _answered(self, uid: str) -> tuple[Task, TaskLane]:
        if self.refused:
            self.refused.pop(uid, None)
        at_hand = self.offered.pop(uid)
        if self._reopened is not None:
            at_hand[1].shut(False)
            self._reopened.append(at_hand[1])
        return at_hand

    # -- turns -----------------------------------------------------------------------------------

    def _next_lane(self) -> TaskLane | None:
        if self._only is not None:
            return self._only if self._only.head is not None else None
        try:
            if self._turns is None:
                self._turns = iter(self._profile.order.turns(self._state.view, self._lanes))
            lane = next(self._turns, _NO_MORE)
            if isinstance(lane, TaskLane):
                return lane
            problem = f"Order.turns must yield the lanes it was given, not {lane!r}"
        except Exception as error:  # a plug-in's defect must not stop the others
            lane, problem = None, f"{type(error).__name__}: {error}"
        if lane is not _NO_MORE:
            self._state.fault(self._profile.order, problem)
            self._turns, self._reopened = iter(()), None
            return None
        if not self._reopened:
            return None
        self._lanes, self._reopened, self._turns = self._reopened, [], None
        return self._next_lane()

    def _let_go(self, hold: Hold, task: Task) -> bool:
        state = self._state
        try:
            until = float(hold.until(state.view, task))
        except Exception as error:  # a plug-in's defect must not stop the others
            problem = f"{type(error).__name__}: {error}"
            state.fault(hold, problem)
            state.lanes.leave(task.uid)
            state.back_off(task, "SchedulerError", f"policy {type(hold).__name__} failed: {problem}")
            return False
        if not until > state.now:  # nan holds nothing
            return True
        state.held[task.uid] = until
        return False
