"""The engine's commands on their way to the API server; the answers go to the inbox.

Most requests in flight are reserved for binds. Binds with steps before them, conditions, evictions, events
and plans of DAG jobs have a few of their own, so that none of them can delay another bind. A pod costs at
most two writes on its way to a node, a condition and a bind, and its events; one for which others are evicted
also its nomination, and two for each victim. One whose preferences were not met gets a condition afterwards.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from eclectus.kubeclient.clock import elapsed
from eclectus.live.inbox import Inbox
from eclectus.live.metrics import Metrics
from eclectus.live.write.binder import Answer, Binder
from eclectus.live.write.conditions import Conditions
from eclectus.live.write.event_recorder import EventRecorder
from eclectus.live.write.evictor import Evictor
from eclectus.live.write.ignored_preferences import IgnoredPreferences
from eclectus.live.write.plans import Plans
from eclectus.live.write.relaxed_conditions import RelaxedConditions
from eclectus.live.write.relaxed_preferences import RelaxedPreferences
from eclectus.live.write.step_binder import IN_FLIGHT, WAIT_FOR_VOLUMES, StepBinder, waits_for_volumes
from eclectus.live.write.workers import FairPool, WorkerPool
from eclectus.model.commands import Bind, Command, Fault, RecordPlan, Report
from eclectus.model.events import BindConfirmed

_log = logging.getLogger(__name__)

Sent = tuple[Bind, float]
"""A bind, and when it was accepted, seconds."""


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
        relaxed: RelaxedPreferences,
        relaxed_conditions: RelaxedConditions,
        evictor: Evictor,
        plans: Plans,
        step_binder: StepBinder,
        in_flight: int,
        metrics: Metrics,
    ) -> None:
        self._conditions, self._recorder = conditions, recorder
        self._evictor, self._plans = evictor, plans
        self._relaxed_conditions = relaxed_conditions
        self._ignored, self._relaxed = ignored, relaxed
        self._inbox, self._metrics, self._in_flight = inbox, metrics, in_flight
        self._binds: WorkerPool[Sent] = WorkerPool("binds", in_flight, partial(self._bind, binder.bind))
        self._stepped: WorkerPool[Sent] = WorkerPool(
            "binds with steps", IN_FLIGHT, partial(self._bind, step_binder.bind)
        )
        self._for_volumes: FairPool[Sent] = FairPool(
            "binds that wait for volumes", WAIT_FOR_VOLUMES, _namespace, partial(self._bind, step_binder.bind)
        )
        depths: dict[str, Callable[[], int]] = {
            "binds": lambda: len(self._binds) + len(self._stepped),
            "volumes": lambda: len(self._for_volumes),
            "conditions": lambda: len(conditions.workers) + len(relaxed_conditions.workers),
            "evictions": lambda: len(evictor.workers),
            "events": lambda: len(recorder.workers),
            "plans": lambda: len(plans.workers),
        }
        for queue, depth in depths.items():
            metrics.outbox_depth.labels(queue).set_function(depth)

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            for workers in self._workers():
                group.create_task(workers.run())
            group.create_task(self._for_volumes.run())

    def accept(self, commands: Sequence[Command]) -> None:
        """Queue the commands of one step."""
        for command in commands:
            match command:
                case Bind():
                    self._conditions.cancel(command.uid)
                    self._relaxed.decided(command)
                    self._pool_for(command).put((command, elapsed()))
                    self._ignored.placed(command)
                case Report():
                    self._report(command)
                case RecordPlan():
                    self._plans.set(command)
                case Fault():
                    self._metrics.faults.labels(command.policy).inc()
                    _log.error("policy %s: %s", command.policy, command.message)
        self._evictor.accept(commands)
        self._share_requests()

    async def wait_for_room(self) -> None:
        """Wait until new binds would be sent soon: a decision becomes stale while it waits in a queue."""
        await self._binds.wait_below(2 * self._in_flight)

    def _pool_for(self, bind: Bind) -> WorkerPool[Sent] | FairPool[Sent]:
        if not bind.before:
            return self._binds
        return self._for_volumes if waits_for_volumes(bind) else self._stepped

    async def wait_until_empty(self) -> None:
        """Wait until everything has been sent and answered, except binds that wait for volumes."""
        for workers in self._workers():
            await workers.wait_below(1)

    async def wait_until_binds_ended(self) -> None:
        """Wait until no bind, nomination or eviction is under way: the next leader must know of them."""
        for workers in (self._binds, self._stepped, self._for_volumes, self._evictor.workers):
            await workers.wait_below(1)

    def _workers(self) -> Sequence[WorkerPool[Any]]:
        """Events last: others write some when they are done."""
        return (
            self._binds,
            self._stepped,
            self._conditions.workers,
            self._evictor.workers,
            self._plans.workers,
            self._relaxed_conditions.workers,
            self._recorder.workers,
        )

    async def _bind(self, attempt: Callable[[Bind], Awaitable[Answer]], sent: Sent) -> None:
        bind, since = sent
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("bind sent", extra={"pod": f"{bind.namespace}/{bind.name}", "node": bind.node})
        answer = await attempt(bind)
        is_bound = isinstance(answer, BindConfirmed)
        result = "scheduled" if is_bound else "error"
        self._metrics.attempt_seconds.labels(result, bind.profile).observe(elapsed() - since)
        self._inbox.put(answer)
        self._share_requests()
        relaxed = self._relaxed.answered(bind, is_bound)
        if is_bound:
            self._recorder.scheduled(bind, relaxed)
            _log.info("bound", extra={"pod": f"{bind.namespace}/{bind.name}", "node": bind.node})

    def _share_requests(self) -> None:
        are_binds_waiting = len(self._binds) > 1  # one that has just been answered still counts
        self._recorder.yield_to_binds(are_binds_waiting)
        self._relaxed_conditions.yield_to_binds(are_binds_waiting)

    def _report(self, report: Report) -> None:
        self._conditions.set(report)
        if report.reason != "WaitingForNode":  # waiting for a faster node is no failure
            self._recorder.failed(report)
        fields = {"pod": f"{report.namespace}/{report.name}", "reason": report.reason}
        _log.info("not scheduled: %s", report.message, extra=fields)


def _namespace(sent: Sent) -> str:
    return sent[0].namespace
