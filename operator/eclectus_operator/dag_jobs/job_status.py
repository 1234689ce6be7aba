"""The status of a DagJob: one function of the job and of what a sync has observed. Pure.

The operator writes everything but `plan`, as a merge patch without it: the scheduler writes that alone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from eclectus.api import common, dag_job
from eclectus.api.common import Condition, time_seconds, time_text
from eclectus.api.dag_job import FINISHED, DagJob, DagJobStatus, StageStatus
from eclectus_operator import convert
from eclectus_operator.dag_jobs.estimates import Estimates
from eclectus_operator.dag_jobs.tasks import Tasks, indexes_text

Conditions = tuple[Condition, ...]
_SHOWN = 200  # characters of a list of tasks in a message


@dataclass(frozen=True)
class Problem:
    """Why pods cannot be created: reason and message of the condition Ready."""

    reason: str
    message: str
    is_final: bool = False  # for good


ACCEPTED = Problem("Accepted", "pods are created as the stages become ready")
FINISHED_READY = Problem("Finished", "no more pods are created")


@dataclass(frozen=True)
class Observed:
    """What a sync has found out about a job."""

    now: float  # seconds since the epoch
    checked: int  # of how many stages a pod was accepted in a dry run
    problem: Problem | None = None
    # None until a pod of all stages was accepted, nor if the spec can never run.
    tasks: Mapping[str, Tasks] = field(default_factory=dict)
    estimates: Estimates = field(default_factory=dict)
    pool_refusal: str = ""  # why its pods are not in the Pool that it asks for


@dataclass(frozen=True)
class StatusUpdate:
    """A new status, and what is done with it."""

    status: DagJobStatus
    is_urgent: bool  # worth a write at once
    patch: dict[str, Any]  # the request that writes it
    deadline: float | None  # when the job fails if it has not finished, seconds since the epoch


def status_update(job: DagJob, seen: Observed) -> StatusUpdate:
    """The status of a job after a sync, and whether to write it.

    The patch carries the resourceVersion: a request that a leader sent long ago must not undo what has come
    since. If the scheduler has written the plan meanwhile, the next sync writes the status.
    """
    found = status(job, seen)
    content = convert.written(replace(found, plan=None))
    patch = {"metadata": {"resourceVersion": job.metadata.resource_version}, "status": content}
    return StatusUpdate(found, _is_urgent(job.status, found), patch, _deadline(job, found.start_time))


def status(job: DagJob, seen: Observed) -> DagJobStatus:
    """The status of a job as observed now. A job starts once its pods may be created."""
    old, now = job.status, time_text(seen.now)
    is_checked = seen.checked >= len(job.spec.stages)
    is_held = job.spec.suspend or not is_checked or (seen.problem is not None and seen.problem.is_final)
    start = old.start_time or (None if is_held else now)
    conditions, has_finished = _with_refusal_of_now(old.conditions, seen.pool_refusal), False
    for each in _conditions(job, seen, _deadline(job, start)):
        conditions = common.with_condition(conditions, each)
        has_finished = has_finished or each.type in FINISHED
    found = replace(
        old,
        observed_generation=job.metadata.generation,
        conditions=conditions,
        start_time=start,
        completion_time=now if has_finished else old.completion_time,
        retry=job.spec.retry,
        checked_stages=seen.checked if start is None or old.checked_stages is not None else None,
    )
    if not seen.tasks:
        return found
    stages = tuple(_stage(seen.tasks[stage.name], seen.estimates) for stage in job.spec.stages)
    done, total = sum(each.succeeded for each in stages), sum(stage.tasks for stage in job.spec.stages)
    return replace(found, stages=stages, tasks=f"{done}/{total}")


def retried(job: DagJob, now: float) -> StatusUpdate:
    """The status of a job that has failed and runs again: as at its first start, with what has succeeded.

    The times of the run before and its plan are taken back, so that its deadlines count anew.
    """
    old, conditions = job.status, job.status.conditions
    number, message = job.spec.retry, "what has not succeeded runs again"
    back = Condition(dag_job.FAILED, "False", "Retried", time_text(now), message, job.metadata.generation)
    found = replace(
        old,
        conditions=common.with_condition(conditions, back),
        start_time=None,
        completion_time=None,
        retry=number,
        plan=None,
    )
    content = {**convert.written(found), "startTime": None, "completionTime": None, "plan": None}
    patch = {"metadata": {"resourceVersion": job.metadata.resource_version}, "status": content}
    return StatusUpdate(found, True, patch, None)


def end_reason(status: DagJobStatus) -> str:
    """Why a job has ended; empty if it has not."""
    ends = (each for each in status.conditions if each.type in FINISHED and each.status == "True")
    return next((each.reason for each in ends), "")


def expiry(job: DagJob) -> float | None:
    """When a job that has finished is to be deleted, seconds since the epoch; None if never."""
    ttl, completed = job.spec.ttl_seconds_after_finished, job.status.completion_time
    return None if ttl is None or completed is None else time_seconds(completed) + ttl


def _conditions(job: DagJob, seen: Observed, deadline: float | None) -> Iterator[Condition]:
    """Ready, Suspended if the job ever was, and how the job has ended if it has."""

    def condition(kind: str, reason: str, message: str, *, holds: bool = True) -> Condition:
        text, generation = message[: common.MESSAGE_CHARACTERS], job.metadata.generation
        return Condition(kind, "True" if holds else "False", reason, time_text(seen.now), text, generation)

    end = _end(job, seen, deadline)
    if not seen.tasks and end is None:
        return  # its templates are still checked
    if seen.pool_refusal:
        yield condition(dag_job.POOL_REFUSED, dag_job.POOL_REFUSED, seen.pool_refusal)
    ready = seen.problem or (FINISHED_READY if end else ACCEPTED)
    yield condition(dag_job.READY, ready.reason, ready.message, holds=seen.problem is None)
    if end is not None:
        yield condition(*end)
    if ready.is_final:
        return
    if job.spec.suspend:
        message = "pods that had not finished are deleted; what has succeeded remains so"
        yield condition(dag_job.SUSPENDED, "Suspended", message)
    elif job.status.condition(dag_job.SUSPENDED) is not None:
        yield condition(dag_job.SUSPENDED, "Resumed", "pods are created again", holds=False)


def _with_refusal_of_now(conditions: Conditions, message: str) -> Conditions:
    """What a condition says of the job's Pool is gone when that takes its pods, or is what is so now."""
    text = message[: common.MESSAGE_CHARACTERS]
    return tuple(
        replace(each, message=text) if each.type == dag_job.POOL_REFUSED else each
        for each in conditions
        if message or each.type != dag_job.POOL_REFUSED
    )


def _end(job: DagJob, seen: Observed, deadline: float | None) -> tuple[str, str, str] | None:
    """How the job has ended now: type, reason and message of a condition; None if it has not."""
    if seen.problem is not None and seen.problem.is_final:
        return dag_job.FAILED, seen.problem.reason, seen.problem.message
    failed = next((each for each in seen.tasks.values() if each.failed), None)
    if failed is not None:
        return dag_job.FAILED, "RetriesExceeded", _failure(failed)
    if seen.tasks and all(each.is_complete for each in seen.tasks.values()):
        return dag_job.SUCCEEDED, "AllTasksSucceeded", "all tasks have succeeded"
    if deadline is not None and seen.now >= deadline:
        message = f"not finished {job.spec.deadline_seconds} s after its start"
        return dag_job.FAILED, "DeadlineExceeded", message
    return None


def _deadline(job: DagJob, start: str | None) -> float | None:
    if job.spec.deadline_seconds is None or start is None:
        return None
    return time_seconds(start) + job.spec.deadline_seconds


def _is_urgent(old: DagJobStatus, new: DagJobStatus) -> bool:
    """Whether to write the change at once: of anything but counts, or of which stages are complete."""
    counts = {"stages": (), "tasks": ""}
    if replace(old, **counts) != replace(new, **counts):
        return True
    before = {each.name: each for each in old.stages}
    return any(
        each.name not in before or _is_complete(before[each.name]) != _is_complete(each)
        for each in new.stages
    )


def _stage(tasks: Tasks, found: Estimates) -> StageStatus:
    seconds, source = found[tasks.stage.name]
    known = None if seconds is None else common.rounded(seconds)
    return replace(tasks.status, estimate_seconds=known, estimate_source=source)


def _is_complete(status: StageStatus) -> bool:
    return status.waiting == status.running == status.failed == 0


def _failure(tasks: Tasks) -> str:
    first = tasks.failed[0]
    pods, listed = tasks.pods.get(first, ()), indexes_text(tasks.failed)
    last = max((pod for pod in pods if pod.has_failed), key=lambda pod: pod.attempt, default=None)
    why = f"; task {first}: {last.why}" if last is not None and last.why else ""
    times = tasks.stage.retries + 1
    return f"stage {tasks.stage.name}: tasks {listed[:_SHOWN]} failed {times} times{why}"
