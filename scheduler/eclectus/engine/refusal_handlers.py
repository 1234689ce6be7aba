"""What the API server has refused: a bind, a nomination, an eviction. Each is undone in the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from eclectus.engine.nominations import Nominations
from eclectus.engine.state import State
from eclectus.model.events import BindRefused, EvictRefused, NominateRefused


class RefusalHandlers:
    """`handlers`: type of event -> what updates the state."""

    def __init__(self, state: State, nominations: Nominations) -> None:
        self._state, self._nominations = state, nominations
        self.handlers: Mapping[type, Callable[[Any], None]] = {
            BindRefused: self._bind_refused,
            NominateRefused: self._nominate_refused,
            EvictRefused: self._evict_refused,
        }

    def _bind_refused(self, event: BindRefused) -> None:
        state = self._state
        nominated = state.placed.forget(event.uid, event.node)
        if nominated is None:
            return
        state.volumes.bind_ended(event.uid)
        state.gangs.bind_refused(event.uid)
        task = state.pending.get(event.uid)
        if task is not None:
            state.accounts.undo_start(task)
        if task is None:
            return
        if task.deleting:
            state.set_aside(task.uid, "deleting")
            return
        self._nominations.bind_refused(task, event.node, nominated)
        if task.gates:
            state.set_aside(task.uid, "gated")
        else:
            refusal = f"binding to node {event.node} was refused: {event.reason}"
            state.back_off(task, "SchedulerError", refusal)

    def _nominate_refused(self, event: NominateRefused) -> None:
        state = self._state
        task = state.pending.get(event.uid)
        if task is not None and event.node and state.placed.is_nominated(event.uid):
            self._nominations.withdraw(task)

    def _evict_refused(self, event: EvictRefused) -> None:
        """The pod that needs the room may never get it: its node is looked at again."""
        state = self._state
        state.eviction_ended(event.uid)
        row = state.cluster.rows.get(state.placed.node_of(event.uid))
        if row is not None:
            state.cluster.usage.record(row)
