"""Debug messages that follow each pod from the watch to its bind; nothing is computed at other log levels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from eclectus.engine.explain.decision import Decision
from eclectus.model.commands import Bind, Command
from eclectus.model.events import BindConfirmed, BindRefused, Event, TaskGone, TaskSeen
from eclectus.model.objects import Task

_log = logging.getLogger(__name__)


def is_wanted() -> bool:
    """Whether debug messages are logged."""
    return _log.isEnabledFor(logging.DEBUG)


class PodTrace:
    """Logs what a step means for each pod of ours.

    The messages in the order of a pod: received (or held back by gates), considered, bind sent and bound
    (`live/write/outbox.py`). Why it is not placed is logged with its report, at a lower level.
    """

    def __init__(self, is_ours: Callable[[str], bool], decision: Callable[[str], Decision | None]) -> None:
        self._is_ours, self._decision = is_ours, decision
        self._seen: dict[str, tuple[str, ...]] = {}  # uid -> gates, of each pending pod that was logged

    def observe_step(self, now: float, events: Sequence[Event], commands: Sequence[Command]) -> None:
        """Take in one step of the engine (a StepObserver)."""
        del now
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
