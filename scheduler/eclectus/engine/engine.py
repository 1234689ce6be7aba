"""The engine: `step(events, now) -> commands`, the same in a cluster and in the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from math import inf
from typing import Any

import numpy as np

from eclectus.cluster.node_groups import group_nodes
from eclectus.engine.event_handlers import EventHandlers
from eclectus.engine.explanations import Explanations
from eclectus.engine.node_dispatch import NodeDispatch
from eclectus.engine.placement import Placement
from eclectus.engine.state import QueueCounts, State
from eclectus.framework import Learn, LearnedCell, Profile
from eclectus.model.commands import Command
from eclectus.model.events import Event, Paused, Resumed
from eclectus.model.learned import LearnedLoad, LearnedNode, LearnedSummary

FLUSH_SECONDS = 30.0  # how often parked lanes are checked against a fresh look (kube-scheduler's period)


class Engine:
    """Decides and never acts. Equal events, times and seed give equal commands."""

    def __init__(self, profiles: Sequence[Profile], learn: Learn, seed: int = 0) -> None:
        self._state = State(profiles, learn, seed)
        self._event_handlers = EventHandlers(self._state)
        self._node_dispatch = NodeDispatch(self._state)
        self._placement = Placement(self._state, self._node_dispatch)
        self._explanations = Explanations(self._state)
        self._handlers: dict[type, Callable[[Any], None]] = {
            **self._event_handlers.handlers,
            Resumed: lambda event: self._lead(True),
            Paused: lambda event: self._lead(False),
        }
        self._deciding = False
        self._flush_at = 0.0
        self._next_step_at: float | None = None  # when to decide again even if nothing happens, seconds
        # Speeds and slots may be 0; dividing by them means inf, which no policy need say each time. numpy
        # keeps that in a context: to enter one made ready costs a tenth of np.errstate in every step.
        self._numpy_context = copy_context()
        self._numpy_context.run(np.seterr, divide="ignore", invalid="ignore")

    def step(self, events: Sequence[Event], now: float) -> list[Command]:
        """Take in what has happened by `now` (seconds, never falling) and answer with what to do."""
        state = self._state
        state.now = state.view.now = now
        state.view.classes.cycle += 1
        # 1. What happened, and what does it teach us?
        for event in events:
            self._handlers[type(event)](event)
        self._event_handlers.match_anti_affinity()
        if self._deciding:
            self._numpy_context.run(self._decide, now)
        commands, state.commands = state.commands, []
        return commands

    def _decide(self, now: float) -> None:
        state = self._state
        # 2. Who may be tried again?
        if state.backoff.waiting:
            for task in state.backoff.take_due(now):
                state.enqueue(task, "BackoffComplete")
        if now >= self._flush_at:
            self._flush_at = now + FLUSH_SECONDS
            self._placement.flush()
        # 3. Nodes serve their lines.
        self._node_dispatch.dispatch_changed()
        # 4. Waiting tasks take their turns, and places.
        if state.class_queues.waiting:
            self._placement.place_pending()
        # 5. Who still waits is told why.
        wake = state.reports.next_due()
        if wake <= now:
            wake = self._explanations.report_due()
        if state.class_queues.waiting:  # only such tasks can be planned, or held
            wake = min(wake, self._flush_at, state.deferrals.next_recheck, *state.held.values())
        if state.backoff.waiting:
            wake = min(wake, state.backoff.next_due())
        self._next_step_at = wake if wake < inf else None

    def _lead(self, whether: bool) -> None:
        self._deciding, self._next_step_at = whether, None

    def next_step_at(self) -> float | None:
        """When to call `step` even if nothing happens, on the clock of `now`; None for never."""
        return self._next_step_at

    @property
    def uses_start_times(self) -> bool:
        """Whether the learner goes by when pods begin to run."""
        return self._event_handlers.uses_start_times

    def learned_cells(self) -> list[LearnedCell]:
        """What has been learned of every node, for people; O(cells)."""
        return list(self._state.learn.learned_cells())

    def learned_nodes(self) -> Iterator[LearnedNode]:
        """What is known of every node, for another process to recall; O(cells), which steps may interrupt."""
        return self._state.learn.learned_nodes()

    def learned_load(self, now: float) -> LearnedLoad | None:
        """How busy all nodes are, as far as the learner says."""
        return self._state.learn.learned_load(now)

    def learned_summary(self, label: str, most: int, now: float) -> tuple[list[str], LearnedSummary | None]:
        """What is known in all, and the names of its groups: values of this label, so many at most."""
        names, groups = group_nodes(self._state.cluster, label, most)
        return names, self._state.learn.summary(groups, now)

    def queue_counts(self) -> QueueCounts:
        """How many pods stand where; O(lanes)."""
        return self._state.queue_counts()
