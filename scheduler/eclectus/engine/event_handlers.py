"""What happened: events change the picture. Late, repeated and unknown ones do no harm."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import Any, cast

from msgspec.structs import replace

from eclectus.engine.probe_validity import ProbeValidity
from eclectus.engine.state import State
from eclectus.framework import Completion, Learn
from eclectus.model.events import (
    BindConfirmed,
    BindRefused,
    LoadSeen,
    NodeGone,
    NodeRecalled,
    NodeSeen,
    TaskGone,
    TaskSeen,
)
from eclectus.model.objects import Task

_need = attrgetter("spec", "priority", "workload", "gates", "profile", "job", "estimate", "path")

TOMBSTONES_MOST = 10_000  # events come late by seconds, not by more pods than this


class EventHandlers:
    """`handlers`: kind of event -> what it changes."""

    def __init__(self, state: State) -> None:
        self._state, self._anti_affinity = state, state.cluster.anti_affinity
        self._matched_generation = 0  # kinds of guards that pending pods have been matched with
        self._arrived = _overridden(state.learn, "arrived")
        self._started = _overridden(state.learn, "started")
        self._left = _overridden(state.learn, "left")
        self._probe_validity = ProbeValidity(state.cluster)
        self._foreign_pending: set[str] = set()  # uids of pods that wait for another scheduler
        self._tombstones: set[str] = set()  # uids of the newest pods that ended or went…
        self._tombstone_order: deque[str] = deque()  # …oldest first
        self.handlers: dict[type, Callable[[Any], None]] = {
            NodeSeen: self._node_seen,
            NodeGone: self._node_gone,
            TaskSeen: self._task_seen,
            TaskGone: lambda event: self._gone(event.uid),
            BindConfirmed: self._bind_confirmed,
            BindRefused: self._bind_refused,
            LoadSeen: self._load_seen,
            NodeRecalled: self._node_recalled,
        }

    @property
    def uses_start_times(self) -> bool:
        """Whether the learner goes by when pods begin to run."""
        return self._started is not None

    def match_anti_affinity(self) -> None:
        """Once a step: pods that wait learn whom the newest residents keep away."""
        if self._anti_affinity.generation != self._matched_generation:
            self._matched_generation = self._anti_affinity.generation
            for task in list(self._state.pending.values()):
                self._pending(task)

    # -- nodes ---------------------------------------------------------------------------------

    def _node_seen(self, event: NodeSeen) -> None:
        state, name = self._state, event.node.name
        is_new = name not in state.cluster.rows
        row = state.cluster.set_node(event.node)
        if is_new:
            state.learn.add_node(row, name, state.cluster.capacity)
            state.placed.add_node(name)

    def _node_gone(self, event: NodeGone) -> None:
        state = self._state
        row = state.cluster.rows.get(event.name)
        if row is None:
            return
        state.deferrals.clear()  # plans name rows, and this row may soon be another node's
        for task in state.node_queues.remove_queue(row):
            state.enqueue(task, "NodeDelete")
        state.placed.remove_node(event.name)
        state.learn.remove_node(row)
        state.cluster.drop_node(event.name)

    def _load_seen(self, event: LoadSeen) -> None:
        self._state.cluster.set_loads(dict(event.loads))

    def _node_recalled(self, event: NodeRecalled) -> None:
        state, known = self._state, event.learned
        if known.node in state.cluster.rows:
            self._inform_learner(state.learn.recall, replace(known, at=min(known.at, state.now)))

    # -- pods ----------------------------------------------------------------------------------

    def _task_seen(self, event: TaskSeen) -> None:
        task, state = event.task, self._state
        if task.uid in self._tombstones:
            return  # late: a uid is never used twice
        if task.ended:
            self._ended(task)
        elif task.node:
            self._bound(task.uid)
            if task.uid in self._foreign_pending:  # as long as it waited, its scheduler may have been dead
                self._foreign_pending.remove(task.uid)
                self._count_arrival(task)
            state.placed.set(task, task.node, state.now)
            for uid in self._probe_validity.observe(task):
                self._leave(uid)
            self._running(task)
        elif task.profile not in state.profiles:
            self._foreign(task)
        else:
            self._pending(task)

    def _running(self, task: Task) -> None:
        if (
            self._started is None
            or task.phase != "Running"
            or task.spec.long_running
            or task.uid in self._probe_validity
        ):
            return
        row = self._state.cluster.rows.get(task.node)
        if row is not None:
            self._inform_learner(self._started, task.uid, row, task.workload, self._state.now)

    def _ended(self, task: Task) -> None:
        tells = task.phase == "Succeeded" and task.uid not in self._probe_validity
        if tells and task.started is not None and task.finished is not None:
            state, seconds = self._state, task.finished - task.started
            row = state.cluster.rows.get(state.placed.node_of(task.uid))
            if row is not None and seconds > 0:
                self._inform_learner(state.learn.observe, Completion(row, task.workload, seconds, state.now))
        self._gone(task.uid)

    def _inform_learner(self, lesson: Callable[..., None], *what: object) -> None:
        try:
            lesson(*what)
        except Exception as error:  # a plug-in's defect must not stop the others
            self._state.fault(self._state.learn, f"{type(error).__name__}: {error}")

    def _foreign(self, task: Task) -> None:
        """Another scheduler's pending pod: room promised to it concerns us, and that it may yet be bound."""
        if self._state.placed.is_bound(task.uid):
            return  # late: a bound pod never comes unbound
        self._foreign_pending.add(task.uid)
        if task.nominated and not task.deleting:
            self._state.placed.set(task, task.nominated, self._state.now)
        else:
            self._state.placed.remove(task.uid)

    def _pending(self, task: Task) -> None:
        state, uid = self._state, task.uid
        if self._anti_affinity.generation:  # before the first guard nobody is kept away
            task = self._with_matched_terms(task)
        before = state.pending.get(uid)
        if before is None and uid in state.placed.placed:
            return  # late: it is bound already, and a bound pod never comes unbound
        state.pending[uid] = task
        if before is None:
            if state.work is not None:
                state.work.appear(task)
            self._count_arrival(task)
        elif uid in state.placed.assumed:
            return  # in flight: the newest picture counts if the bind is refused
        if task.deleting:
            state.dequeue(uid)
        elif task.gates:
            state.dequeue(uid)
            state.gated.add(uid)
        elif before is None:
            state.enqueue(task, "PodAdd")
        elif uid in state.backoff:
            state.backoff.replace(task)
        elif not _same_need(before, task) or not self._waits(uid):
            state.dequeue(uid)
            state.enqueue(task, "PodUpdate")

    def _count_arrival(self, task: Task) -> None:
        if self._arrived is not None and not task.spec.long_running:
            self._inform_learner(self._arrived, task.workload, self._state.now)

    def _with_matched_terms(self, task: Task) -> Task:
        """The task, its spec saying which residents' anti-affinity it matches (nearly always none)."""
        matched = self._anti_affinity.matching(task.namespace, task.labels)
        if matched == task.spec.matched_terms:
            return task
        return replace(task, spec=replace(task.spec, matched_terms=matched))

    def _waits(self, uid: str) -> bool:
        return uid in self._state.class_queues or uid in self._state.node_queues

    def _gone(self, uid: str) -> None:
        state = self._state
        self._add_tombstone(uid)
        self._foreign_pending.discard(uid)
        self._probe_validity.remove(uid)
        self._leave(uid)
        state.forget(uid)
        state.placed.confirm(uid)
        state.placed.remove(uid)

    def _leave(self, uid: str) -> None:
        if self._left is not None:
            self._inform_learner(self._left, uid, self._state.now)

    def _add_tombstone(self, uid: str) -> None:
        graves, buried = self._tombstones, self._tombstone_order
        if uid in graves:
            return
        graves.add(uid)
        buried.append(uid)
        if len(buried) > TOMBSTONES_MOST:
            graves.remove(buried.popleft())

    # -- answers -------------------------------------------------------------------------------

    def _bind_confirmed(self, event: BindConfirmed) -> None:
        if event.uid in self._state.placed.assumed:
            self._bound(event.uid)

    def _bound(self, uid: str) -> None:
        """The pod is bound, as the answer or the watch says first."""
        state = self._state
        task = state.forget(uid)
        if state.placed.confirm(uid) and task is not None:
            state.attempted("scheduled", task)

    def _bind_refused(self, event: BindRefused) -> None:
        state = self._state
        if not state.placed.forget(event.uid, event.node):
            return
        task = state.pending.get(event.uid)
        if task is not None and state.work is not None:
            state.work.begin(task, -1)
        if task is None or task.deleting:
            return
        if task.gates:
            state.gated.add(task.uid)
        else:
            refusal = f"binding to node {event.node} was refused: {event.reason}"
            state.back_off(task, "SchedulerError", refusal)


def _overridden(learn: Learn, hook: str) -> Callable[..., None] | None:
    """The learner's own answer to what it may be told; None if it has none, so that nobody need tell it."""
    own = getattr(type(learn), hook) is not getattr(Learn, hook)
    return cast(Callable[..., None], getattr(learn, hook)) if own else None


def _same_need(one: Task, other: Task) -> bool:
    """Whether nothing has changed that the queue or the rules look at."""
    return bool(_need(one) == _need(other))
