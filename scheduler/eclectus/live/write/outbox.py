"""What the engine wants done, on its way to the API server; what comes of it goes to the inbox.

Binds go first and have most places. Conditions and events have few of their own, so that neither can
ever delay a bind. A pod costs at most two writes (a condition, a bind) besides its events.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from eclectus.kubeclient.clock import elapsed
from eclectus.live.inbox import Inbox
from eclectus.live.metrics import Metrics
from eclectus.live.write.binder import Binder
from eclectus.live.write.conditions import Conditions
from eclectus.live.write.event_recorder import Recorder
from eclectus.live.write.workers import Crew
from eclectus.model.commands import Bind, Command, Fault, Report
from eclectus.model.events import BindConfirmed

_log = logging.getLogger(__name__)


class Outbox:
    """Takes commands, never refuses one, and says when it has had enough."""

    def __init__(
        self,
        binder: Binder,
        conditions: Conditions,
        recorder: Recorder,
        inbox: Inbox,
        *,
        in_flight: int,
        metrics: Metrics,
    ) -> None:
        self._binder, self._conditions, self._recorder = binder, conditions, recorder
        self._inbox, self._metrics, self._in_flight = inbox, metrics, in_flight
        self._binds: Crew[tuple[Bind, float]] = Crew("binds", in_flight, self._bind)
        depth: dict[str, Callable[[], int]] = {
            "binds": lambda: len(self._binds),
            "conditions": lambda: len(conditions.crew),
            "events": lambda: len(recorder.crew),
        }
        for queue, count in depth.items():
            metrics.outbox_depth.labels(queue).set_function(count)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for crew in (self._binds, self._conditions.crew, self._recorder.crew):
                group.create_task(crew.run())

    def accept(self, commands: Sequence[Command]) -> None:
        """Take what one step has decided."""
        for command in commands:
            match command:
                case Bind():
                    self._conditions.cancel(command.uid)
                    self._binds.put((command, elapsed()))
                case Report():
                    self._report(command)
                case Fault():
                    self._metrics.faults.labels(command.policy).inc()
                    _log.error("policy %s: %s", command.policy, command.message)

    async def room(self) -> None:
        """Wait until the next step's binds would not wait long: decisions should not age in a queue."""
        await self._binds.fewer_than(2 * self._in_flight)

    async def drained(self) -> None:
        """Wait until everything is done."""
        for crew in (self._binds, self._conditions.crew, self._recorder.crew):
            await crew.fewer_than(1)

    async def _bind(self, item: tuple[Bind, float]) -> None:
        bind, since = item
        answer = await self._binder.bind(bind)
        bound = isinstance(answer, BindConfirmed)
        result = "scheduled" if bound else "error"
        self._metrics.attempt_seconds.labels(result, bind.profile).observe(elapsed() - since)
        self._inbox.put(answer)
        if bound:
            self._recorder.scheduled(bind)
            _log.info("bound", extra={"pod": f"{bind.namespace}/{bind.name}", "node": bind.node})

    def _report(self, report: Report) -> None:
        self._conditions.say(report)
        if report.reason != "WaitingForNode":  # a pod that waits for a good place has not failed
            self._recorder.failed(report)
        names = {"pod": f"{report.namespace}/{report.name}", "reason": report.reason}
        _log.info("not placed: %s", report.message, extra=names)
