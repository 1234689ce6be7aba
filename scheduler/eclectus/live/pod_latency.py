"""How long pods wait: from the first sight of a pod without gates to its bind."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import Histogram

from eclectus.model.commands import Command, Report
from eclectus.model.events import BindConfirmed, BindRefused, Event, TaskGone, TaskSeen

ATTEMPTS_TOLD = 14  # beyond it kube-scheduler's label says "15+"


class Waits:
    """A stopwatch per waiting pod of ours."""

    def __init__(self, ours: Callable[[str], bool], told: Histogram) -> None:
        self._ours, self._told = ours, told
        self._since: dict[str, float] = {}
        self._attempts: dict[str, int] = {}

    def note(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """What one step took in and gave out."""
        for event in events:
            match event:
                case TaskSeen(task=task) if not (task.node or task.gates or task.ended) and self._ours(
                    task.profile
                ):
                    self._since.setdefault(task.uid, now)
                case BindConfirmed(uid=uid):
                    self._bound(uid, now)
                case BindRefused(uid=uid):
                    self._attempts[uid] = self._attempts.get(uid, 1) + 1
                case TaskGone(uid=uid):
                    self._forget(uid)
                case _:
                    pass  # nodes, and pods of others
        for command in commands:
            if isinstance(command, Report) and command.uid in self._since:
                self._attempts[command.uid] = self._attempts.get(command.uid, 1) + 1

    def _bound(self, uid: str, now: float) -> None:
        since = self._since.get(uid)
        if since is not None:
            attempts = self._attempts.get(uid, 1)
            self._told.labels(str(attempts) if attempts <= ATTEMPTS_TOLD else "15+").observe(now - since)
        self._forget(uid)

    def _forget(self, uid: str) -> None:
        self._since.pop(uid, None)
        self._attempts.pop(uid, None)
