"""Writes on each pod why it is not scheduled: condition PodScheduled=False.

Two traps. A patch that arrived after the bind would overwrite the PodScheduled=True that the API server
sets, so each patch carries the resourceVersion it was made for and fails if the pod has changed since.
And `lastTransitionTime` is when the status changed, so it is left out if the status is False already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from eclectus.config.process_settings import ClientConnectionSettings
from eclectus.kubeclient.backoff import Backoff
from eclectus.kubeclient.client import STRATEGIC_MERGE
from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.errors import ApiError, ConflictError, NotDoneError, UnsureError
from eclectus.live.context import Context
from eclectus.live.watch.watched import ConditionState
from eclectus.live.write.workers import WorkerPool
from eclectus.model.commands import Report

PATIENCE_SECONDS = 120.0  # a condition that could not be written for this long is given up

_log = logging.getLogger(__name__)


class Conditions:
    """Writes the newest report of each pod; `workers.run()` must run.

    `state_of` returns the condition's state by uid, None for a pod that is bound, gone or not ours.
    """

    def __init__(
        self,
        context: Context,
        state_of: Callable[[str], ConditionState | None],
        holds_lease: Callable[[], bool],
        connection: ClientConnectionSettings,
    ) -> None:
        self._context, self._state_of, self._holds_lease = context, state_of, holds_lease
        self._pending: dict[str, Report] = {}  # uid -> newest report, which replaces one that still waits
        self.workers: WorkerPool[str] = WorkerPool("conditions", connection.conditions_in_flight, self._write)

    def set(self, report: Report) -> None:
        """Queue the report to be written on its pod."""
        is_queued = report.uid in self._pending
        self._pending[report.uid] = report
        if not is_queued:
            self.workers.put(report.uid)

    def cancel(self, uid: str) -> None:
        """Drop the report of a pod that is being bound."""
        self._pending.pop(uid, None)

    async def _write(self, uid: str) -> None:
        backoff = Backoff(0.1, 5.0, self._context.rng)
        give_up_at = elapsed() + PATIENCE_SECONDS
        while elapsed() < give_up_at:
            report, state = self._pending.get(uid), self._state_of(uid)
            if report is None or state is None or not self._holds_lease():
                break  # being bound; bound, gone or not ours; or another process leads
            try:
                await self._patch(report, state)
            except (ConflictError, NotDoneError, UnsureError) as error:
                # After a conflict the watch brings the newer version. After an uncertain answer a
                # repetition is harmless: a patch that was applied has changed the version.
                await asyncio.sleep(getattr(error, "retry_after", None) or backoff.wait())
            except ApiError as error:
                _log.warning(
                    "condition not written: %s", error, extra={"pod": f"{report.namespace}/{report.name}"}
                )
                break
            else:
                if self._pending.get(uid) is report:  # else a newer report has come during the request
                    break
        self._pending.pop(uid, None)

    async def _patch(self, report: Report, state: ConditionState) -> None:
        path = f"/api/v1/namespaces/{report.namespace}/pods/{report.name}/status"
        await self._context.client.send(
            "PATCH", path, condition_patch(report, state, datetime.now(UTC)), content_type=STRATEGIC_MERGE
        )


def condition_patch(report: Report, state: ConditionState, now: datetime) -> dict[str, Any]:
    """A strategic merge patch of the condition alone; it applies to this version of the pod only."""
    condition: dict[str, Any] = {
        "type": "PodScheduled",
        "status": "False",
        "reason": report.reason,
        "message": report.message,
        "observedGeneration": state.generation,
    }
    if not state.is_false:
        condition["lastTransitionTime"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {"uid": report.uid, "resourceVersion": state.resource_version},
        "status": {"conditions": [condition]},
    }
