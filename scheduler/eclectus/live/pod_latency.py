"""Scheduling latency of pods: from the first time a pod is seen without gates until it is bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import Histogram

from eclectus.model.commands import Command, Report
from eclectus.model.events import BindConfirmed, BindRefused, Event, TaskGone, TaskSeen

MAX_ATTEMPTS = 14  # with more attempts the label `attempts` is "15+", as in kube-scheduler


class PodLatency:
    """Observes the latency of each pod whose schedulerName is ours, labelled with its attempts.

    `histogram` has one label, `attempts`. An attempt ends with a bind, a refused bind or a report.
    """

    def __init__(self, is_ours: Callable[[str], bool], histogram: Histogram) -> None:
        self._is_ours, self._histogram = is_ours, histogram
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
