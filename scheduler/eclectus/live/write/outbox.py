"""The engine's commands on their way to the API server; the answers go to the inbox.

Most requests in flight are reserved for binds. Conditions, evictions and events have a few of their own, so
that none of them can delay a bind. A pod costs at most two writes, a condition and a bind, and its events;
one for which others are evicted also its nomination, and two for each victim.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from eclectus.kubeclient.clock import elapsed
from eclectus.live.inbox import Inbox
from eclectus.live.metrics import Metrics
from eclectus.live.write.binder import Binder
from eclectus.live.write.conditions import Conditions
from eclectus.live.write.event_recorder import EventRecorder
from eclectus.live.write.evictor import Evictor
from eclectus.live.write.ignored_preferences import IgnoredPreferences
from eclectus.live.write.workers import WorkerPool
from eclectus.model.commands import Bind, Command, Fault, Report
from eclectus.model.events import BindConfirmed

_log = logging.getLogger(__name__)


class Outbox:
    """Accepts every command at once; `wait_for_room` slows the loop down while binds queue up."""

    def __init__(
        self,
        binder: Binder,
        conditions: Conditions,
        recorder: EventRecorder,
        ignored: IgnoredPreferences,
        inbox: Inbox,
        *,
        evictor: Evictor,
        in_flight: int,
        metrics: Metrics,
    ) -> None:
        self._binder, self._conditions, self._recorder = binder, conditions, recorder
        self._evictor = evictor
        self._ignored = ignored
        self._inbox, self._metrics, self._in_flight = inbox, metrics, in_flight
        self._binds: WorkerPool[tuple[Bind, float]] = WorkerPool("binds", in_flight, self._bind)
        depths: dict[str, Callable[[], int]] = {
            "binds": lambda: len(self._binds),
            "conditions": lambda: len(conditions.workers),
            "evictions": lambda: len(evictor.workers),
            "events": lambda: len(recorder.workers),
        }
        for queue, depth in depths.items():
            metrics.outbox_depth.labels(queue).set_function(depth)

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            for workers in self._workers():
                group.create_task(workers.run())

    def accept(self, commands: Sequence[Command]) -> None:
        """Queue the commands of one step."""
        for command in commands:
            match command:
                case Bind():
                    self._conditions.cancel(command.uid)
                    self._binds.put((command, elapsed()))
                    self._ignored.placed(command)
                case Report():
                    self._report(command)
                case Fault():
                    self._metrics.faults.labels(command.policy).inc()
                    _log.error("policy %s: %s", command.policy, command.message)
        self._evictor.accept(commands)

    async def wait_for_room(self) -> None:
        """Wait until new binds would be sent soon: a decision becomes stale while it waits in a queue."""
        await self._binds.wait_below(2 * self._in_flight)

    async def wait_until_empty(self) -> None:
        """Wait until everything has been sent and answered."""
        for workers in self._workers():
            await workers.wait_below(1)

    def _workers(self) -> Sequence[WorkerPool[Any]]:
        """Events last: others write some when they are done."""
        return (self._binds, self._conditions.workers, self._evictor.workers, self._recorder.workers)

    async def _bind(self, item: tuple[Bind, float]) -> None:
        bind, since = item
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("bind sent", extra={"pod": f"{bind.namespace}/{bind.name}", "node": bind.node})
        answer = await self._binder.bind(bind)
        is_bound = isinstance(answer, BindConfirmed)
        result = "scheduled" if is_bound else "error"
        self._metrics.attempt_seconds.labels(result, bind.profile).observe(elapsed() - since)
        self._inbox.put(answer)
        if is_bound:
            self._recorder.scheduled(bind)
            _log.info("bound", extra={"pod": f"{bind.namespace}/{bind.name}", "node": bind.node})

    def _report(self, report: Report) -> None:
        self._conditions.set(report)
        if report.reason != "WaitingForNode":  # waiting for a faster node is no failure
            self._recorder.failed(report)
        fields = {"pod": f"{report.namespace}/{report.name}", "reason": report.reason}
        _log.info("not scheduled: %s", report.message, extra=fields)
