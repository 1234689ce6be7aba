"""What the scheduler writes into the status of objects that others write too.

Conditions and nominations of pods, which of them are late, plans of DagJobs, and what is measured of Pools.

Each patch carries the resourceVersion it was made for. It fails if the object has changed since, and is made
again for the version that the watch brings. So it never arrives after the pod's bind, nor reaches a new
object of the same name.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from typing_extensions import override

from eclectus.api.names import API_VERSION, DAG_JOB, DAG_JOBS, POOL, POOLS_PATH, STRAGGLING
from eclectus.kube.dag_jobs import plan_status
from eclectus.kube.pools import pool_status
from eclectus.kubeclient.api_errors import ApiError, MissingError
from eclectus.kubeclient.client import MERGE_PATCH, STRATEGIC_MERGE
from eclectus.kubeclient.timing import TroubleLog
from eclectus.live.process_metrics import Context, Figure, Measured
from eclectus.live.watch.watched_kinds import ConditionState, PlanState, PoolState, StragglerState
from eclectus.live.write.write_queues import OUTDATED, NewestWriter, Persistence, Result, pod_path
from eclectus.model.commands import Bind, MarkStraggling, Nominate, RecordPlan, RecordPool, Report

CONDITION_PATIENCE_SECONDS = 120.0
RECORD_PATIENCE_SECONDS = 30.0  # of plans and what is measured: short, because something newer will come
# Few: the engine plans a job, and measures a pool, every few seconds at most, and no bind depends on either.
RECORDS_IN_FLIGHT = 4

ConditionStates = Callable[[str], ConditionState | None]
"""The state of the condition by uid; None for a pod that is bound, gone or not ours."""

_log = logging.getLogger(__name__)


class Conditions(NewestWriter[Report]):
    """Writes on each pod why it is not scheduled, by uid: the condition PodScheduled=False."""

    def __init__(
        self, context: Context, persistence: Persistence, state_of: ConditionStates, in_flight: int
    ) -> None:
        super().__init__("conditions", in_flight, persistence, CONDITION_PATIENCE_SECONDS)
        self._client = context.client
        self._state_of = state_of

    @override
    async def _write(self, value: Report) -> None:
        body = condition_patch(value, _pending(self._state_of(value.uid)), datetime.now(UTC))
        await self._client.send("PATCH", pod_path(value) + "/status", body, content_type=STRATEGIC_MERGE)

    @override
    def _ended(self, value: Report, result: Result, error: ApiError | None) -> None:
        if result == "refused":
            _log.warning("condition not written: %s", error, extra={"pod": f"{value.namespace}/{value.name}"})


def condition_patch(report: Report, state: ConditionState, now: datetime) -> dict[str, Any]:
    """A strategic merge patch of the condition alone.

    `lastTransitionTime` is when the status changed, so it is left out if the status is False already.
    """
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


@dataclass(eq=False)
class Nominator:
    """Writes `status.nominatedNodeName` of pending pods."""

    context: Context
    persistence: Persistence
    state_of: ConditionStates

    async def write(self, pod: Bind | Nominate, node: str, patience_seconds: float) -> str:
        """Write the node, or that there is none if empty; returns why that was not possible, or nothing."""

        async def patch() -> None:
            version = _pending(self.state_of(pod.uid)).resource_version
            metadata = {"uid": pod.uid, "resourceVersion": version}
            body = {"metadata": metadata, "status": {"nominatedNodeName": node or None}}
            path = pod_path(pod) + "/status"
            await self.context.client.send("PATCH", path, body, content_type=STRATEGIC_MERGE)

        return await self.persistence.why_not(patch, OUTDATED, patience_seconds)


class Patch(NamedTuple):
    """Where a part of a status is written, for which version, and its fields."""

    path: str
    resource_version: str
    status: dict[str, Any]


_Record = TypeVar("_Record", RecordPlan, RecordPool)


class _Records(NewestWriter[_Record]):
    """Writes the scheduler's part of the status of custom resources, of which others write the rest.

    `name`: of the queue; `what` is written, in the plural. `counter` has the label `result`.
    """

    def __init__(
        self, name: str, what: str, context: Context, persistence: Persistence, counter: Measured[Figure]
    ) -> None:
        super().__init__(name, RECORDS_IN_FLIGHT, persistence, RECORD_PATIENCE_SECONDS)
        self._what = what
        self._client = context.client
        self._counter = counter
        self._trouble = TroubleLog(_log)

    @abstractmethod
    def _patch(self, value: _Record) -> Patch:
        """For the version that the watch showed last. Raises MissingError for an object that is gone."""

    @abstractmethod
    def _named(self, value: _Record) -> str:
        """What is written of which object, for messages."""

    @override
    async def _write(self, value: _Record) -> None:
        path, version, status = self._patch(value)
        body = {"metadata": {"resourceVersion": version}, "status": status}
        await self._client.send("PATCH", path, body, content_type=MERGE_PATCH)

    @override
    def _ended(self, value: _Record, result: Result, error: ApiError | None) -> None:
        self._counter.labels(result).inc()
        if error is None:
            self._trouble.succeeded(f"{self._what} are written again")
        else:
            self._trouble.failed(result, f"{self._named(value)} not written: {error.reason}")


class Plans(_Records[RecordPlan]):
    """Writes the plan of each DAG job, by uid, so that a restart keeps deadlines and people see them.

    The operator writes the rest of the status. `state_of` returns the state of a job by uid, None for one
    that has ended or is gone.
    """

    def __init__(
        self, context: Context, persistence: Persistence, state_of: Callable[[str], PlanState | None]
    ) -> None:
        super().__init__("plans", "plans", context, persistence, context.metrics.plan_writes)
        self._state_of = state_of

    @override
    def _patch(self, value: RecordPlan) -> Patch:
        state = self._state_of(value.uid)
        if state is None:
            raise MissingError("PATCH", message="the job has ended or is gone")
        path = f"/apis/{API_VERSION}/namespaces/{value.namespace}/{DAG_JOBS}/{value.name}/status"
        return Patch(path, state.resource_version, {"plan": plan_status(value.plan, state.plan)})

    @override
    def _named(self, value: RecordPlan) -> str:
        return f"plan of {DAG_JOB} {value.namespace}/{value.name}"


class MeasuredPools(_Records[RecordPool]):
    """Writes what is measured of each Pool, by name, so that a restart keeps since when one is starved.

    The operator writes the conditions. `state_of` returns the state of a Pool by name, None for one that is
    gone or does not count.
    """

    def __init__(
        self, context: Context, persistence: Persistence, state_of: Callable[[str], PoolState | None]
    ) -> None:
        what = "measurements of pools"
        super().__init__("pools", what, context, persistence, context.metrics.pool_writes)
        self._state_of = state_of

    @override
    def _patch(self, value: RecordPool) -> Patch:
        state = self._state_of(value.name)
        if state is None:
            raise MissingError("PATCH", message="the Pool is gone")
        status = pool_status(value.record, state.status)
        return Patch(f"{POOLS_PATH}/{value.name}/status", state.resource_version, status)

    @override
    def _named(self, value: RecordPool) -> str:
        return f"what is measured of {POOL} {value.name}"


class Stragglers(NewestWriter[MarkStraggling]):
    """Writes on running pods whether they are late, by uid: the condition by which the operator makes copies.

    `state_of` returns the state of a pod by uid, None for one that has ended, is gone or is not ours.
    """

    def __init__(
        self, context: Context, persistence: Persistence, state_of: Callable[[str], StragglerState | None]
    ) -> None:
        super().__init__("stragglers", RECORDS_IN_FLIGHT, persistence, RECORD_PATIENCE_SECONDS)
        self._client = context.client
        self._state_of = state_of
        self._counter = context.metrics.straggler_writes
        self._trouble = TroubleLog(_log)

    @override
    async def _write(self, value: MarkStraggling) -> None:
        state = self._state_of(value.uid)
        if state is None:
            raise MissingError("PATCH", message="the pod has ended or is gone")
        body = straggling_patch(value, state, datetime.now(UTC))
        await self._client.send("PATCH", pod_path(value) + "/status", body, content_type=STRATEGIC_MERGE)

    @override
    def _ended(self, value: MarkStraggling, result: Result, error: ApiError | None) -> None:
        self._counter.labels(result).inc()
        if error is None:
            self._trouble.succeeded("conditions of stragglers are written again")
        else:
            self._trouble.failed(result, f"{value.namespace}/{value.name} not marked: {error.reason}")


def straggling_patch(mark: MarkStraggling, state: StragglerState, now: datetime) -> dict[str, Any]:
    """A strategic merge patch of the condition alone; its time changes with its status."""
    condition: dict[str, Any] = {
        "type": STRAGGLING,
        "status": "True" if mark.is_straggling else "False",
        "reason": mark.reason,
        "message": mark.message,
    }
    if mark.is_straggling != state.is_straggling:
        condition["lastTransitionTime"] = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {"uid": mark.uid, "resourceVersion": state.resource_version}
    return {"metadata": metadata, "status": {"conditions": [condition]}}


def _pending(state: ConditionState | None) -> ConditionState:
    """The state of a pod that is neither bound nor gone. Raises MissingError."""
    if state is None:
        raise MissingError("PATCH", message="the pod is bound or gone")
    return state
