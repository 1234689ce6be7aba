"""Gangs that have changed: their pods wait for each other, for the turn of the gang, or as any others."""

from __future__ import annotations

from itertools import islice

from eclectus.engine.nominations import Nominations
from eclectus.engine.queues.gang import WaitingGang, in_turn
from eclectus.engine.state import State

PODS_MOST = 2_000  # of gangs that have become complete or incomplete: so many change queues in one step
EVENT = "PodGroupChange"  # why they are queued, for metrics


class GangTurns:
    """Moves the pods of gangs between queues, once a step."""

    def __init__(self, state: State, nominations: Nominations) -> None:
        self._state, self._nominations = state, nominations

    def update(self) -> None:
        """Look after every gang that has changed, or whose back-off is over."""
        left = PODS_MOST
        for gang in self._state.gangs.take_changed(self._state.now):
            left -= self._update(gang, left)

    def _update(self, gang: WaitingGang, most: int) -> int:
        """Returns how many pods have changed queues. What is left goes on in the next step."""
        gangs = self._state.gangs
        if gang.is_complete:
            moved = self._release(gang, most)
            if gang.held:
                gangs.change(gang)
            return moved
        moved = self._gather(gang, most)
        if gang.ordinary:
            gangs.change(gang)
        may_be_tried = not gang.problem and gang.retry_at <= self._state.now
        if gang.lead is not None and not may_be_tried:
            self._state.dequeue_lead(gang)
        elif gang.lead is None and may_be_tried and not gang.ordinary:
            self._state.enqueue_lead(min(gang.held.values(), key=in_turn), EVENT)
        return moved

    def _release(self, gang: WaitingGang, most: int) -> int:
        """The gang is complete: pods that were held for it wait as any others."""
        state, released = self._state, list(islice(gang.held.values(), most))
        for task in released:
            state.leave(task.uid)
            state.enqueue(task, EVENT)
            self._nominations.observe(task)
        return len(released)

    def _gather(self, gang: WaitingGang, most: int) -> int:
        """The gang is not complete: pods that waited as any others are held for it."""
        state, gathered = self._state, list(islice(gang.ordinary, most))
        for uid in gathered:
            del gang.ordinary[uid]
            if state.places.of(uid) in ("classQueue", "nodeQueue"):
                task = state.pending[uid]
                if state.placed.is_nominated(uid):
                    self._nominations.withdraw(task)
                state.dequeue(uid)
                state.enqueue(task, EVENT)
        return len(gathered)
