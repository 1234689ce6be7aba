"""What is observed of a pod from the watch to its bind: its scheduling latency, and debug messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from prometheus_client import Histogram

from eclectus.explain.placement import Decision
from eclectus.model.commands import Bind, Command, Report
from eclectus.model.events import BindConfirmed, BindRefused, Event, TaskGone, TaskSeen
from eclectus.model.objects import Task

_log = logging.getLogger(__name__)

MAX_ATTEMPTS = 14  # with more attempts the label `attempts` is "15+", as in kube-scheduler


class PodLatency:
    """Observes the latency of each pod whose schedulerName is ours, labelled with its attempts.

    `histogram` has one label, `attempts`. An attempt ends with a bind, a refused bind or a report.
    """

    def __init__(self, is_ours: Callable[[str], bool], histogram: Histogram) -> None:
        self._is_ours = is_ours
        self._histogram = histogram
        self._since: dict[str, float] = {}  # uid -> when first seen without gates
        self._attempts: dict[str, int] = {}  # uid -> attempts, the current one included

    def observe_step(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one step of the engine (a StepObserver)."""
        for event in events:
            match event:
                case TaskSeen(task=task) if not (task.node or task.gates or task.ended) and self._is_ours(
                    task.profile
                ):
                    self._since.setdefault(task.uid, now)
                case BindConfirmed(uid=uid):
                    self._bound(uid, now)
                case BindRefused(uid=uid):
                    self._count_attempt(uid)
                case TaskGone(uid=uid):
                    self._forget(uid)
                case _:
                    pass  # nodes, and pods of other schedulers
        for command in commands:
            if isinstance(command, Report):
                self._count_attempt(command.uid)

    def _count_attempt(self, uid: str) -> None:
        """One more attempt, unless the pod is gone: what a late refusal left would stay for ever."""
        if uid in self._since:
            self._attempts[uid] = self._attempts.get(uid, 1) + 1

    def _bound(self, uid: str, now: float) -> None:
        since = self._since.get(uid)
        if since is not None:
            attempts = self._attempts.get(uid, 1)
            label = str(attempts) if attempts <= MAX_ATTEMPTS else "15+"
            self._histogram.labels(label).observe(now - since)
        self._forget(uid)

    def _forget(self, uid: str) -> None:
        self._since.pop(uid, None)
        self._attempts.pop(uid, None)


class PodTrace:
    """Logs what a step means for each pod of ours.

    The messages in the order of a pod: received (or held back by gates), considered, bind sent and bound
    (`live/write/outbox.py`). Why it is not placed is logged with its report, at a lower level.
    """

    def __init__(self, is_ours: Callable[[str], bool], decision: Callable[[str], Decision | None]) -> None:
        self._is_ours = is_ours
        self._decision = decision
        self._seen: dict[str, tuple[str, ...]] = {}  # uid -> gates, of each pending pod that was logged

    @staticmethod
    def is_wanted() -> bool:
        """Whether debug messages are logged."""
        return _log.isEnabledFor(logging.DEBUG)

    def observe_step(self, _now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one step of the engine (a StepObserver)."""
        for event in events:
            match event:
                case TaskSeen(task=task) if not (task.node or task.ended) and self._is_ours(task.profile):
                    self._received(task)
                case BindRefused(uid=uid, node=node, reason=reason):
                    _log.debug("back in the queue: %s", reason, extra={"uid": uid, "node": node})
                case TaskGone(uid=uid) | BindConfirmed(uid=uid):
                    self._seen.pop(uid, None)
                case _:
                    pass  # nodes, and pods of other schedulers
        for command in commands:
            if isinstance(command, Bind):
                self._considered(command)

    def _received(self, task: Task) -> None:
        if self._seen.get(task.uid) == task.gates:
            return
        self._seen[task.uid] = task.gates
        fields = {"pod": str(task), "uid": task.uid}
        if task.gates:
            _log.debug("received, held back by scheduling gates %s", ", ".join(task.gates), extra=fields)
        else:
            _log.debug(
                "received and queued: class %s, priority %d", task.workload, task.priority, extra=fields
            )

    def _considered(self, bind: Bind) -> None:
        found = self._decision(bind.uid)
        fields = {"pod": f"{bind.namespace}/{bind.name}", "uid": bind.uid, "node": bind.node}
        _log.debug("considered: %s", found or "nothing is known", extra=fields)
