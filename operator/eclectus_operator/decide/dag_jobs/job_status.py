"""The status of a DagJob after each sync, and when it is worth a write. Pure.

The operator writes everything but `plan`, as a merge patch without it: the scheduler writes that alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from msgspec.structs import replace

from eclectus.api.common import Condition, rounded, time_seconds, time_text
from eclectus.api.dag_job import (
    FAILED,
    FINISHED,
    READY,
    SUCCEEDED,
    SUSPENDED,
    DagJob,
    DagJobStatus,
    StageStatus,
)
from eclectus_operator.decide.conditions import MESSAGE_CHARACTERS, with_condition
from eclectus_operator.decide.dag_jobs.estimates import Estimates
from eclectus_operator.decide.dag_jobs.tasks import Tasks
from eclectus_operator.objects import convert
from eclectus_operator.objects.dag_jobs import indexes

WRITE_SECONDS = 15.0  # between two writes of counts alone
_SHOWN = 200  # characters of a list of tasks in a message

Phase = Literal["Pending", "Running", "Suspended", "Succeeded", "Failed"]
"""Of a job, for metrics: `Pending` until its first pods may be created."""


@dataclass(frozen=True)
class Problem:
    """Why pods cannot be created: reason and message of the condition Ready. `is_final`: for good."""

    reason: str
    message: str
    is_final: bool = False


def counted(job: DagJob, tasks: Mapping[str, Tasks], found: Estimates) -> DagJobStatus:
    """The status with the counts of the tasks, and with the estimates."""
    stages = tuple(_stage(tasks[stage.name], found) for stage in job.spec.stages)
    done, total = sum(each.succeeded for each in stages), sum(stage.tasks for stage in job.spec.stages)
    return replace(job.status, stages=stages, tasks=f"{done}/{total}")


def accepted(job: DagJob, status: DagJobStatus, problem: Problem | None, now: float) -> DagJobStatus:
    """The status with Ready and Suspended as they are, and with the start time once pods may be created."""
    ready = problem or Problem("Accepted", "pods are created as the stages become ready")
    status = _with(job, status, READY, ready.reason, ready.message, holds=problem is None, now=now)
    status = replace(status, observed_generation=job.metadata.generation)
    if problem is not None and problem.is_final:
        return _ended(job, status, FAILED, ready.reason, ready.message, now=now)
    if job.spec.suspend:
        message = "pods that had not finished are deleted; what has succeeded remains so"
        return _with(job, status, SUSPENDED, "Suspended", message, now=now)
    if status.condition(SUSPENDED) is not None:
        message = "pods are created again"
        status = _with(job, status, SUSPENDED, "Resumed", message, holds=False, now=now)
    return status if status.start_time else replace(status, start_time=time_text(now))


def settled(job: DagJob, status: DagJobStatus, tasks: Iterable[Tasks], now: float) -> DagJobStatus:
    """The status with Succeeded or Failed if the job has ended."""
    stages = list(tasks)
    failed = [each for each in stages if each.failed]
    if failed:
        return _ended(job, status, FAILED, "RetriesExceeded", _failure(failed[0]), now=now)
    if all(each.is_complete for each in stages):
        return _ended(job, status, SUCCEEDED, "AllTasksSucceeded", "all tasks have succeeded", now=now)
    until = deadline(job, status)
    if until is not None and now >= until:
        message = f"not finished {job.spec.deadline_seconds} s after its start"
        return _ended(job, status, FAILED, "DeadlineExceeded", message, now=now)
    return status


def _ended(
    job: DagJob, status: DagJobStatus, kind: str, reason: str, message: str, *, now: float
) -> DagJobStatus:
    """The status of a job that has succeeded or failed now."""
    status = _with(job, status, kind, reason, message, now=now)
    return replace(status, completion_time=time_text(now))


def phase(job: DagJob) -> Phase:
    """In which phase a job is."""
    if job.status.has_finished:
        succeeded = job.status.condition(SUCCEEDED)
        return "Succeeded" if succeeded is not None and succeeded.status == "True" else "Failed"
    if job.spec.suspend:
        return "Suspended"
    return "Running" if job.status.start_time else "Pending"


def end_reason(status: DagJobStatus) -> str:
    """Why a job has ended; empty if it has not."""
    ends = (each for each in status.conditions if each.type in FINISHED and each.status == "True")
    return next((each.reason for each in ends), "")


def deadline(job: DagJob, status: DagJobStatus) -> float | None:
    """When the job fails if it has not finished, seconds since the epoch; None if never."""
    if job.spec.deadline_seconds is None or status.start_time is None:
        return None
    return time_seconds(status.start_time) + job.spec.deadline_seconds


def expiry(job: DagJob) -> float | None:
    """When a job that has finished is to be deleted, seconds since the epoch; None if never."""
    ttl, completed = job.spec.ttl_seconds_after_finished, job.status.completion_time
    return None if ttl is None or completed is None else time_seconds(completed) + ttl


def is_urgent(old: DagJobStatus, new: DagJobStatus) -> bool:
    """Whether to write the change at once: of a condition, or of which stages are complete."""
    if (old.conditions, old.observed_generation, old.start_time) != (
        new.conditions,
        new.observed_generation,
        new.start_time,
    ):
        return True
    before = {each.name: each for each in old.stages}
    return any(
        each.name not in before or _is_complete(before[each.name]) != _is_complete(each)
        for each in new.stages
    )


def patch(job: DagJob, status: DagJobStatus) -> dict[str, Any]:
    """A merge patch of the operator's part of the status.

    The uid makes the API server refuse it for another job of that name. No resourceVersion: the scheduler
    writes the plan meanwhile, and nobody else writes these fields.
    """
    content = convert.written(replace(status, plan=None))
    return {"metadata": {"uid": job.metadata.uid}, "status": content}


def _stage(tasks: Tasks, found: Estimates) -> StageStatus:
    seconds, source = found[tasks.stage.name]
    known = None if seconds is None else rounded(seconds)
    return replace(tasks.status(), estimate_seconds=known, estimate_source=source)


def _is_complete(status: StageStatus) -> bool:
    return status.waiting == status.running == status.failed == 0


def _failure(tasks: Tasks) -> str:
    first = tasks.failed[0]
    pod, listed = tasks.last_pod(first), indexes.written(tasks.failed)
    why = f"; task {first}: {pod.why}" if pod is not None and pod.why else ""
    times = tasks.stage.retries + 1
    return f"stage {tasks.stage.name}: tasks {listed[:_SHOWN]} failed {times} times{why}"


def _with(
    job: DagJob,
    status: DagJobStatus,
    kind: str,
    reason: str,
    message: str,
    *,
    now: float,
    holds: bool = True,
) -> DagJobStatus:
    new = Condition(
        kind,
        "True" if holds else "False",
        reason,
        time_text(now),
        message[:MESSAGE_CHARACTERS],
        job.metadata.generation,
    )
    return replace(status, conditions=with_condition(status.conditions, new))
