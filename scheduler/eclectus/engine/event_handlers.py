"""What happened: events change the picture. Late, repeated and unknown ones do no harm."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import attrgetter
from typing import Any, cast

from msgspec.structs import replace

from eclectus.engine.probe_validity import Crowding
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

GRAVES_MOST = 10_000  # events come late by seconds, not by more pods than this


class Noting:
    """`handlers`: kind of event -> what it changes."""

    def __init__(self, state: State) -> None:
        self._state, self._guards = state, state.cluster.guards
        self._guards_met = 0  # kinds of guards that pending pods have been matched with
        self._arrived = _heeded(state.learn, "arrived")
        self._started = _heeded(state.learn, "started")
        self._left = _heeded(state.learn, "left")
        self._crowding = Crowding(state.cluster)
        self._elsewhere: set[str] = set()  # uids of pods that wait for another scheduler
        self._graves: set[str] = set()  # uids of the newest pods that ended or went…
        self._buried: deque[str] = deque()  # …oldest first
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
    def heeds_starts(self) -> bool:
        """Whether the learner goes by when pods begin to run."""
        return self._started is not None

    def match_guards(self) -> None:
        """Once a step: pods that wait learn whom the newest residents keep away."""
        if self._guards.arrivals != self._guards_met:
            self._guards_met = self._guards.arrivals
            for task in list(self._state.pending.values()):
                self._pending(task)

    # -- nodes ---------------------------------------------------------------------------------

    def _node_seen(self, event: NodeSeen) -> None:
        state, name = self._state, event.node.name
        is_new = name not in state.cluster.rows
        row = state.cluster.put_node(event.node)
        if is_new:
            state.learn.seat(row, name, state.cluster.capacity)
            state.residents.node_appeared(name)

    def _node_gone(self, event: NodeGone) -> None:
        state = self._state
        row = state.cluster.rows.get(event.name)
        if row is None:
            return
        state.plans.lift()  # plans name rows, and this row may soon be another node's
        for task in state.lines.disband(row):
            state.enqueue(task, "NodeDelete")
        state.residents.node_leaving(event.name)
        state.learn.unseat(row)
        state.cluster.drop_node(event.name)

    def _load_seen(self, event: LoadSeen) -> None:
        self._state.cluster.see_loads(dict(event.loads))

    def _node_recalled(self, event: NodeRecalled) -> None:
        state, known = self._state, event.known
        if known.node in state.cluster.rows:
            self._teach(state.learn.recall, replace(known, at=min(known.at, state.now)))

    # -- pods ----------------------------------------------------------------------------------

    def _task_seen(self, event: TaskSeen) -> None:
        task, state = event.task, self._state
        if task.uid in self._graves:
            return  # late: a uid is never used twice
        if task.ended:
            self._ended(task)
        elif task.node:
            self._bound(task.uid)
            if task.uid in self._elsewhere:  # as long as it waited, its scheduler may have been dead
                self._elsewhere.remove(task.uid)
                self._came(task)
            state.residents.put(task, task.node, state.now)
            for uid in self._crowding.seen(task):
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
            or task.spec.lasting
            or task.uid in self._crowding
        ):
            return
        row = self._state.cluster.rows.get(task.node)
        if row is not None:
            self._teach(self._started, task.uid, row, task.workload, self._state.now)

    def _ended(self, task: Task) -> None:
        tells = task.phase == "Succeeded" and task.uid not in self._crowding
        if tells and task.started is not None and task.finished is not None:
            state, seconds = self._state, task.finished - task.started
            row = state.cluster.rows.get(state.residents.node_of(task.uid))
            if row is not None and seconds > 0:
                self._teach(state.learn.observe, Completion(row, task.workload, seconds, state.now))
        self._gone(task.uid)

    def _teach(self, lesson: Callable[..., None], *what: object) -> None:
        try:
            lesson(*what)
        except Exception as error:  # a plug-in's defect must not stop the others
            self._state.fault(self._state.learn, f"{type(error).__name__}: {error}")

    def _foreign(self, task: Task) -> None:
        """Another scheduler's pending pod: room promised to it concerns us, and that it may yet be bound."""
        if self._state.residents.is_bound(task.uid):
            return  # late: a bound pod never comes unbound
        self._elsewhere.add(task.uid)
        if task.nominated and not task.deleting:
            self._state.residents.put(task, task.nominated, self._state.now)
        else:
            self._state.residents.drop(task.uid)

    def _pending(self, task: Task) -> None:
        state, uid = self._state, task.uid
        if self._guards.arrivals:  # before the first guard nobody is kept away
            task = self._warned(task)
        before = state.pending.get(uid)
        if before is None and uid in state.residents.held:
            return  # late: it is bound already, and a bound pod never comes unbound
        state.pending[uid] = task
        if before is None:
            if state.work is not None:
                state.work.appear(task)
            self._came(task)
        elif uid in state.residents.assumed:
            return  # in flight: the newest picture counts if the bind is refused
        if task.deleting:
            state.unqueue(uid)
        elif task.gates:
            state.unqueue(uid)
            state.gated.add(uid)
        elif before is None:
            state.enqueue(task, "PodAdd")
        elif uid in state.backoff:
            state.backoff.replace(task)
        elif not _same_need(before, task) or not self._waits(uid):
            state.unqueue(uid)
            state.enqueue(task, "PodUpdate")

    def _came(self, task: Task) -> None:
        if self._arrived is not None and not task.spec.lasting:
            self._teach(self._arrived, task.workload, self._state.now)

    def _warned(self, task: Task) -> Task:
        """The task, its spec saying which residents' anti-affinity it matches (nearly always none)."""
        shunned = self._guards.matching(task.namespace, task.labels)
        if shunned == task.spec.shunned:
            return task
        return replace(task, spec=replace(task.spec, shunned=shunned))

    def _waits(self, uid: str) -> bool:
        return uid in self._state.lanes or uid in self._state.lines

    def _gone(self, uid: str) -> None:
        state = self._state
        self._bury(uid)
        self._elsewhere.discard(uid)
        self._crowding.gone(uid)
        self._leave(uid)
        state.forget(uid)
        state.residents.confirm(uid)
        state.residents.drop(uid)

    def _leave(self, uid: str) -> None:
        if self._left is not None:
            self._teach(self._left, uid, self._state.now)

    def _bury(self, uid: str) -> None:
        graves, buried = self._graves, self._buried
        if uid in graves:
            return
        graves.add(uid)
        buried.append(uid)
        if len(buried) > GRAVES_MOST:
            graves.remove(buried.popleft())

    # -- answers -------------------------------------------------------------------------------

    def _bind_confirmed(self, event: BindConfirmed) -> None:
        if event.uid in self._state.residents.assumed:
            self._bound(event.uid)

    def _bound(self, uid: str) -> None:
        """The pod is bound, as the answer or the watch says first."""
        state = self._state
        task = state.forget(uid)
        if state.residents.confirm(uid) and task is not None:
            state.attempted("scheduled", task)

    def _bind_refused(self, event: BindRefused) -> None:
        state = self._state
        if not state.residents.forget(event.uid, event.node):
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


def _heeded(learn: Learn, hook: str) -> Callable[..., None] | None:
    """The learner's own answer to what it may be told; None if it has none, so that nobody need tell it."""
    own = getattr(type(learn), hook) is not getattr(Learn, hook)
    return cast(Callable[..., None], getattr(learn, hook)) if own else None


def _same_need(one: Task, other: Task) -> bool:
    """Whether nothing has changed that the queue or the rules look at."""
    return bool(_need(one) == _need(other))
