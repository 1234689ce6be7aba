"""Writes the plan of each DAG job into its status, so that a restart keeps deadlines and people see them.

The operator writes the rest of the status, so only `status.plan` is patched. Each patch carries the
resourceVersion it was made for: it fails if the operator, or anybody, has changed the job meanwhile, and is
made again for the version that the watch brings. So it never reaches a new job of the same name.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from eclectus.api.names import API_VERSION, DAG_JOBS
from eclectus.kube.dag_jobs import plan_status
from eclectus.kubeclient.client import MERGE_PATCH
from eclectus.kubeclient.errors import ApiError, ConflictError, MissingError, NotDoneError, UnsureError
from eclectus.kubeclient.trouble import TroubleLog
from eclectus.live.context import Context
from eclectus.live.watch.dag_jobs import PlanState
from eclectus.live.write.persistence import Persistence
from eclectus.live.write.workers import WorkerPool
from eclectus.model.commands import RecordPlan

IN_FLIGHT = 4  # few: the engine plans a job every few seconds at most, and no bind depends on it
PATIENCE_SECONDS = 30.0  # a plan not written for this long is given up: a newer one will come

_log = logging.getLogger(__name__)


class Plans:
    """Writes the newest plan of each job; `workers.run()` must run.

    `state_of` returns the state of a job by uid, None for one that has ended or is gone; `holds_lease` is
    asked before each request.
    """

    def __init__(
        self, context: Context, state_of: Callable[[str], PlanState | None], holds_lease: Callable[[], bool]
    ) -> None:
        self._context, self._state_of = context, state_of
        self._persistence, self._trouble = Persistence(context, holds_lease), TroubleLog(_log)
        self._pending: dict[str, RecordPlan] = {}  # uid -> newest plan, which replaces one that still waits
        self.workers: WorkerPool[str] = WorkerPool("plans", IN_FLIGHT, self._write)

    def set(self, record: RecordPlan) -> None:
        """Queue the plan to be written."""
        is_queued = record.uid in self._pending
        self._pending[record.uid] = record
        if not is_queued:
            self.workers.put(record.uid)

    async def _write(self, uid: str) -> None:
        """Write until the newest plan is written; the job is in `_pending` as long as this goes on."""
        sent: RecordPlan | None = None

        async def send() -> None:
            nonlocal sent
            sent = self._pending[uid]
            await self._send(sent)

        while (record := self._pending[uid]) is not sent:
            result, problem = await self._attempt(send)
            self._context.metrics.plan_writes.labels(result).inc()
            if problem:
                message = f"plan of DagJob {record.namespace}/{record.name} not written: {problem}"
                self._trouble.failed(result, message)
                break
            self._trouble.succeeded("plans are written again")
        del self._pending[uid]

    async def _attempt(self, send: Callable[[], Awaitable[None]]) -> tuple[str, str]:
        """`written`, `gone`, `refused` or `failed`, and why it was not written if that is no normal end."""
        try:
            # After a conflict the watch brings the newer version of the job.
            again = (ConflictError, NotDoneError, UnsureError)
            problem = await self._persistence.attempt(send, again, PATIENCE_SECONDS)
        except MissingError:
            return "gone", ""
        except ApiError as error:
            return "refused", error.message or str(error)
        return ("failed" if problem else "written"), problem

    async def _send(self, record: RecordPlan) -> None:
        state = self._state_of(record.uid)
        if state is None:
            raise MissingError("PATCH", message="the job has ended or is gone")
        path = f"/apis/{API_VERSION}/namespaces/{record.namespace}/{DAG_JOBS}/{record.name}/status"
        body = plan_patch(record, state)
        await self._context.client.send("PATCH", path, body, content_type=MERGE_PATCH)


def plan_patch(record: RecordPlan, state: PlanState) -> dict[str, Any]:
    """A merge patch of the plan alone; it applies to this version of the job only."""
    return {
        "metadata": {"resourceVersion": state.resource_version},
        "status": {"plan": plan_status(record.plan, state.plan)},
    }
