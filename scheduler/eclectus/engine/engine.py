"""The engine: `step(events, now) -> commands`, the same on a cluster and in the simulator."""

from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from math import inf
from typing import Any, TypeVar

import numpy as np

from eclectus.engine.counters import QueueCounts
from eclectus.engine.effects import Effects
from eclectus.engine.event_handlers import EventHandlers
from eclectus.engine.gang_attempts import GangTurns
from eclectus.engine.learner_feed import LearnerFeed
from eclectus.engine.node_dispatch import NodeDispatch
from eclectus.engine.nominations import Nominations
from eclectus.engine.placement import Placement
from eclectus.engine.relief import Relief
from eclectus.engine.reports import Explanations
from eclectus.engine.speculation import Speculation
from eclectus.engine.state import State
from eclectus.engine.wait_limit import WaitLimit
from eclectus.framework import FlowProblem, Learn, Need, Profile
from eclectus.model.commands import Command
from eclectus.model.events import Event, Paused, Reseeded, Resumed, WaitLimitSeen

RECHECK_SECONDS = 30.0  # how often unschedulable classes are rechecked (kube-scheduler's period)

Answer = TypeVar("Answer")


class Engine:
    """Decides and never acts. Equal events, times and seed give equal commands."""

    def __init__(self, profiles: Sequence[Profile], learn: Learn, seed: int = 0) -> None:
        self.learn = learn  # what it has learned may be read between two steps
        self._state = State(profiles, learn, seed)
        self._learner_feed = LearnerFeed(self._state)
        self._nominations = Nominations(self._state)
        self._event_handlers = EventHandlers(self._state, self._learner_feed, self._nominations)
        self._node_dispatch = NodeDispatch(self._state)
        effects = Effects(self._state, self._node_dispatch, self._nominations)
        self._placement = Placement(self._state, effects, self._nominations)
        self._gang_turns = GangTurns(self._state, self._nominations)
        self._wait_limit = WaitLimit(self._state, self._nominations)
        self._relief = Relief(self._state, effects, self._nominations)
        attempts = self._state.attempts
        self._speculation = (
            None if attempts is None else Speculation(self._state, attempts, self._learner_feed)
        )
        self._explanations = Explanations(self._state)
        self._handlers: dict[type, Callable[[Any], None]] = {
            **self._event_handlers.handlers,
            Resumed: lambda event: self._lead(True),
            Paused: lambda event: self._lead(False),
            WaitLimitSeen: lambda event: self._state.waiting_times.set_limit(
                event.profile, event.limit, self._state.now
            ),
            Reseeded: lambda event: self._state.view.rng.seed(event.seed),
        }
        # What is to be watched, and for the profiles of which schedulerNames.
        self.needs: Mapping[Need, frozenset[str]] = self._state.needs
        self.asks_solver = any(each.place.traits.asks_solver for each in profiles)
        self.leads = False  # whether it decides: after Resumed, and not after Paused; written here only
        self._recheck_at = 0.0
        self._next_step_at: float | None = None  # when to step even if nothing happens, seconds
        # Speeds and slots may be 0, and dividing by them gives inf: policies need not silence numpy.
        # numpy keeps that setting in a context; entering a prepared one costs a tenth of np.errstate.
        self._numpy_context = copy_context()
        self._numpy_context.run(np.seterr, divide="ignore", invalid="ignore")

    def step(self, events: Sequence[Event], now: float) -> list[Command]:
        """Take in what has happened by `now` (seconds, never falling) and answer with what to do."""
        state, handlers = self._state, self._event_handlers
        state.begin_step(now)
        # 1. What happened, and what does it teach the learner?
        for event in events:
            self._handlers[type(event)](event)
        self._next_step_at, may_decide = None, self.leads
        if has_news := handlers.has_news:
            handlers.bring_specs_up_to_date()
            may_decide = may_decide and not handlers.must_wait
        if may_decide:
            if now >= self._recheck_at or not self._nothing_waits:
                self._numpy_context.run(self._decide, now)
            elif state.has_pools:
                self._decide_if_pools_are_due(now)
            if self._speculation is not None:
                self._numpy_context.run(self._ask_for_stragglers, self._speculation, now)
        if has_news and handlers.goes_on:
            self._next_step_at = now
        return state.end_step()

    def _decide(self, now: float) -> None:
        state = self._state
        # 2. Pods whose back-off is over become pending again, and those whose pools have got room.
        state.return_pods()
        if now >= self._recheck_at:
            self._recheck_at = now + RECHECK_SECONDS
            self._placement.recheck()
            self._nominations.review_kept()
            if state.evictions.spared:
                state.review_spared()
        if self._event_handlers.change_at <= now:
            self._event_handlers.change_places()
        #    Gangs whose pods have come or gone, or whose back-off is over, get or lose their turn.
        gangs = state.gangs
        if gangs.changed or (gangs.retries and gangs.next_due() <= now):
            self._gang_turns.update()
        # 3. Nodes that have changed start the tasks that are nominated to them, then those of their queues.
        self._dispatch_nodes()
        # 4. Pending tasks are placed. A cycle that was cut ends, tasks or not: reports wait for that.
        if state.class_queues.count or self._placement.goes_on:
            self._placement.place_pending()
        # 5. Pods that have waited beside room for as long as their profile allows are placed all the same.
        if state.waiting_times.next_due <= now:
            self._wait_limit.place_overdue()
        #    Pools may have had too little for so long that they take room back.
        if state.has_pools:
            self._nominations.review_inherited()
            state.look_at_pools()
        # 6. Other pods make room for tasks that were refused, when policies say so.
        if state.relief.waiting and state.relief.next_due() <= now:
            self._relief.relieve()
            self._nominations.dispatch_changed()
        #    Nodes are kept free for others of them, when their Orders say so.
        if state.reserving.waiting and state.reserving.next_due() <= now:
            self._relief.reserve()
            self._nominations.dispatch_changed()
        # 7. Pods that still wait are reported, when their reports are due and all have been asked about.
        reports = state.reports
        at = (
            reports.next_due()
            if reports.first or reports.repeated or reports.at_once or reports.moved
            else inf
        )
        if at <= now and not self._placement.goes_on:
            at = self._explanations.report_due()
        # 8. What is planned for DAG jobs is written, when it has changed.
        if state.plan_records.orders:
            state.record_plans()
        #    So is what is measured of Pools.
        if state.has_pools:
            state.record_pools()
            at = min(at, state.pool_records.next_due, state.pool_refusals.next_due, state.starvation.next_due)
        at = self._next_due(min(at, state.waiting_times.next_due, state.plan_records.next_due))
        self._next_step_at = at if at < inf else None

    def _ask_for_stragglers(self, speculation: Speculation, now: float) -> None:
        """Whether or not pods wait."""
        if speculation.next_due <= now:
            speculation.ask()
        if speculation.next_due < inf:
            at = self._next_step_at
            self._next_step_at = speculation.next_due if at is None else min(at, speculation.next_due)

    @property
    def _nothing_waits(self) -> bool:
        """Whether all pending pods are being bound, and nothing is decided about but pods and Pools."""
        state = self._state
        if len(state.pending) != len(state.placed.assumed):
            return False
        return not (state.placed.nominated or state.plan_records.orders or state.gangs.changed)

    def _decide_if_pools_are_due(self, now: float) -> None:
        """Answers to binds, while nothing waits, are most of the steps of a busy cluster."""
        state = self._state
        at = min(state.pool_records.next_due, state.pool_refusals.next_due, state.starvation.due_at)
        # Classes and gangs may still be due of which the last pod is bound or gone.
        is_due = state.relief.waiting or state.reserving.waiting or state.gangs.retries
        if at <= now or is_due or self._placement.goes_on:
            self._numpy_context.run(self._decide, now)
        elif at < inf:
            self._next_step_at = at

    def _dispatch_nodes(self) -> None:
        state = self._state
        if state.placed.nominated:
            if state.has_pools:
                self._nominations.review_limits()
            self._nominations.dispatch_changed()
        if state.node_queues.by_row:
            self._node_dispatch.dispatch_changed()
        else:  # a queue that is formed later need not look at what has changed before
            cluster = state.cluster
            self._node_dispatch.seen = cluster.usage.head, cluster.shape.head, cluster.service_changes

    def _next_due(self, at: float) -> float:
        """When the next step is due, at the latest at this time; seconds, inf for never."""
        state, now = self._state, self._state.now
        if state.class_queues.count:  # only tasks there can be unschedulable or deferred
            at = min(at, self._recheck_at, self._placement.next_until)
            if state.reserving.waiting:
                at = min(at, max(state.reserving.next_due(), now))
            if self._placement.is_due:
                at = now
        waits = state.class_queues.count or state.node_queues.by_row or state.gangs.retries
        if state.relief.waiting and waits:
            at = min(at, max(state.relief.next_due(), now))
        if state.backoff.waiting:
            at = min(at, state.backoff.next_due())
        if state.gangs.retries:
            at = min(at, state.gangs.next_due())
        if state.has_pools and state.held_back.may_start:
            at = now
        return now if state.gangs.changed else min(at, self._event_handlers.change_at)

    def _lead(self, leads: bool) -> None:
        self.leads = leads

    def next_step_at(self) -> float | None:
        """When to call `step` even if nothing happens, on the clock of `now`; None for never."""
        return self._next_step_at

    def problem(self, serial: int) -> FlowProblem | None:
        """The arrays of a command Solve; None once it is answered or void."""
        return self._state.solves.problem(serial)

    @property
    def waits(self) -> bool:
        """Whether pods wait that the last step could not place."""
        return self.leads and self._state.class_queues.count > 0

    # -- for metrics and other processes -------------------------------------------------------

    def read(self, question: Callable[..., Answer], *arguments: object) -> Answer:
        """Call `question(state, *arguments)`, which must not change the state (explain/)."""
        return self._numpy_context.run(question, self._state, *arguments)

    def queue_counts(self) -> QueueCounts:
        """How many pods are in which queue; O(pods that wait)."""
        state = self._state
        queues, places = state.class_queues, state.places.counts()
        unschedulable = sum(len(queue) for queue in queues if queue.unschedulable_since is not None)
        return QueueCounts(
            active=len(queues) - unschedulable,
            backoff=places["backOff"],
            held_back=places["heldBack"],
            unschedulable=unschedulable,
            arriving=places["arriving"],
            gated=places["gated"],
            in_gangs=places["gang"],
            node_queues=places["nodeQueue"],
            binding=places["assumed"],
            nominated=sum(map(len, state.placed.nominated.values())),
            straggling=0 if state.attempts is None else len(state.attempts.marks),
            nodes=len(state.cluster),
            classes=len(state.view.classes),
            dag_jobs=0 if state.accounts.jobs is None else len(state.accounts.jobs),
            resources=len(state.cluster.columns),
            counters=state.counters,
        )
