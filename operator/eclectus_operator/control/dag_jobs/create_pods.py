"""Creating the next pods of a DagJob, and what the API server has against them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from eclectus.kubeclient.errors import ConflictError, MissingError, RejectedError
from eclectus_operator.control.context import NotLeadingError
from eclectus_operator.control.dag_jobs.context import JobSync
from eclectus_operator.decide.dag_jobs import job_status
from eclectus_operator.decide.dag_jobs.job_status import Problem
from eclectus_operator.decide.dag_jobs.next_pods import MOST_WRITES, NewPod, next_pods
from eclectus_operator.decide.dag_jobs.tasks import Tasks
from eclectus_operator.objects import convert
from eclectus_operator.objects.dag_jobs import pods, task_pods
from eclectus_operator.objects.observed import Pod

FORBIDDEN = 403
_SHOWN = 5  # failures in one event
_log = logging.getLogger(__name__)


async def create_pods(
    sync: JobSync, tasks: Mapping[str, Tasks], hints: Mapping[str, Mapping[str, str]]
) -> None:
    """Create the next pods; a stage whose pods are refused waits. `hints`: annotations by stage.

    Raises ApiError where it is not the pod that is refused.
    """
    now, refusals = sync.now, sync.memory.refusals
    was_refused = bool(refusals)
    blocked = {stage for stage, refusal in refusals.items() if now < refusal.until}
    new = next_pods(sync.job, tasks, sync.context.settings.dag_waiting, blocked)
    for stage in refusals.keys() - blocked - {each.stage.name for each in new}:
        del refusals[stage]  # it needs no more pods, such as after a request whose answer was lost
    created: list[NewPod] = []
    refused: set[str] = set()
    for each in new:
        stage = each.stage.name
        if stage in refused:
            continue
        problem = await _create(sync, each, hints[stage])
        if problem is None:
            created.append(each)
            refusals.pop(stage, None)
        else:
            refused.add(stage)
            sync.memory.refuse(stage, problem, now)
    await _report(sync, created)
    if refused:
        await _write_refusal(sync, refusals[min(refused)].problem)
    if len(new) == MOST_WRITES or (was_refused and not refusals):
        sync.wake_by(now)  # there may be more to create, or the condition Ready to change


async def _create(sync: JobSync, new: NewPod, hints: Mapping[str, str]) -> Problem | None:
    """Create a pod; None if it exists then. Raises ApiError."""
    try:
        body = pods.pod(
            sync.job,
            new.stage,
            new.name,
            new.index,
            new.attempt,
            memory_factors=new.memory_factors,
            estimates=hints,
        )
        await sync.context.api.send("POST", sync.pods_path, body)
    except ConflictError:
        return await _adopt(sync, new)
    except NotLeadingError:
        raise
    except (RejectedError, MissingError) as error:
        return _refusal(new, error.status, error.message)
    sync.context.metrics.dag_jobs.pod_created(new.attempt)
    _log.info("created %s/%s", sync.job.metadata.namespace, new.name)
    return None


async def _adopt(sync: JobSync, new: NewPod) -> Problem | None:
    """The pod exists: an earlier request has created it, or its name is taken. Raises ApiError."""
    try:
        found = convert.read(await sync.context.api.send("GET", f"{sync.pods_path}/{new.name}"), Pod)
    except MissingError:
        sync.wake_by(sync.now)  # it was there a moment ago
        return None
    if task_pods.is_owned(found, sync.job):
        return None
    return Problem("NameTaken", f"stage {new.stage.name}: a pod of somebody else is named {new.name}")


def _refusal(new: NewPod, status: int, message: str) -> Problem:
    reason = "PodInvalid"
    if status == FORBIDDEN:
        reason = "QuotaExceeded" if "exceeded quota" in message else "PodForbidden"
    return Problem(reason, f"stage {new.stage.name}: {message}")


async def _write_refusal(sync: JobSync, problem: Problem) -> None:
    """Set Ready to False, and write an event if it was not."""
    before = sync.job.status.condition("Ready")
    status = job_status.accepted(sync.job, sync.memory.status or sync.job.status, problem, sync.now)
    await sync.write_status(status)
    if before is None or before.reason != problem.reason:
        await sync.record(problem.reason, problem.message)


async def _report(sync: JobSync, created: list[NewPod]) -> None:
    """An event for the tasks that get more memory, and one for the others that run again after a failure."""
    killed, failed = list[str](), list[str]()
    for each in created:
        if each.before is not None and each.before.has_failed:
            task = f"{each.stage.name}[{each.index}]"
            if each.before.killed:
                killed.append(f"{task}: {task_pods.factors_text(each.memory_factors)}")
            else:
                failed.append(f"{task}: {each.before.why}")
    if killed:
        head = "run again with more memory, by these factors of the template's: "
        await sync.record("MemoryRaised", _listed(head, killed))
    if failed:
        await sync.record("TasksRetried", _listed("run again after a failure: ", failed))


def _listed(head: str, parts: list[str]) -> str:
    more = f"; and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    return head + "; ".join(parts[:_SHOWN]) + more
