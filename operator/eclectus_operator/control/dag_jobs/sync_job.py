"""One sync of one DagJob: read it and its pods, write what has come of it, delete and create pods.

Nothing is decided from memory alone. Wherever a crash falls, the next sync finds the pods that exist, and
what is recorded of those that do not: names are deterministic, a failure is counted by its attempt, and a pod
is deleted for being surplus only when the status records its success.
"""

from __future__ import annotations

from collections.abc import Mapping

from eclectus.api.dag_job import DagJob, DagJobStatus, StageStatus
from eclectus.kubeclient.errors import MissingError
from eclectus_operator.control.context import OperatorContext
from eclectus_operator.control.dag_jobs.check_job import find_problem
from eclectus_operator.control.dag_jobs.context import JobKey, JobMemory, JobSync, job_path, list_pods
from eclectus_operator.control.dag_jobs.create_pods import create_pods
from eclectus_operator.decide.dag_jobs import graph, job_status, next_pods
from eclectus_operator.decide.dag_jobs.estimates import History, estimates, pod_hints
from eclectus_operator.decide.dag_jobs.tasks import Tasks, assess
from eclectus_operator.objects import convert
from eclectus_operator.objects.dag_jobs.task_pods import TaskPod

PODS_PER_SECOND = 500  # listed: a job with more pods is synced less often
MIN_SECONDS = 1.0  # between two syncs of a job


async def read_job(context: OperatorContext, key: JobKey) -> DagJob | None:
    """The job as the API server has it; None if it is gone or being deleted. Raises ApiError, ShapeError."""
    try:
        job = convert.read(await context.api.send("GET", job_path(key)), DagJob)
    except MissingError:
        return None
    return None if job.metadata.deletion_timestamp else job


async def sync_job(context: OperatorContext, job: DagJob, memory: JobMemory, history: History) -> JobSync:
    """Carry out what is to be done for a job now. Raises ApiError, ShapeError."""
    history.note(job)
    if job.status.has_finished:
        return await _clean_up(JobSync(context, job, memory, {}))
    pods = await list_pods(context, job)
    sync = JobSync(context, job, memory, _by_stage(pods), len(pods))
    problem = await find_problem(sync)
    if problem is not None and problem.is_final:
        status = job_status.accepted(job, job.status, problem, sync.now)
        await sync.write_status(status)
        await sync.record(problem.reason, problem.message)
        return await _clean_up(sync)
    found = estimates(job, history)
    tasks = _assess(sync)
    before = job.status
    status = job_status.counted(job, tasks, found)
    status = job_status.accepted(job, status, problem, sync.now)
    status = job_status.settled(job, status, tasks.values(), sync.now)
    await sync.write_status(status)
    await _report(sync, before, status)
    if status.has_finished:
        return await _clean_up(sync)
    await _delete_pods(sync, tasks)
    if not job.spec.suspend:
        await create_pods(sync, tasks, pod_hints(job, found, tasks.values()))
    _plan_next(sync, status, tasks)
    return sync


def _by_stage(pods: list[TaskPod]) -> dict[str, list[TaskPod]]:
    found: dict[str, list[TaskPod]] = {}
    for pod in pods:
        found.setdefault(pod.stage, []).append(pod)
    return found


def _assess(sync: JobSync) -> dict[str, Tasks]:
    """The tasks of each stage, children first: whether they have finished decides what parents must keep."""
    recorded, found = _recorded(sync), dict[str, Tasks]()
    for stage in reversed(graph.ordered(sync.job.spec)):
        complete = [name for name, each in found.items() if each.is_complete]
        needed = stage.name in next_pods.with_needed_outputs(sync.job, complete)
        own, status = sync.pods.get(stage.name, []), recorded.get(stage.name, StageStatus(stage.name))
        found[stage.name] = assess(stage, status, own, sync.now, outputs_needed=needed)
    return found


def _recorded(sync: JobSync) -> Mapping[str, StageStatus]:
    """What is known of the stages: as computed last if that is not written yet, else as the status says."""
    known = sync.memory.status or sync.job.status
    return {each.name: each for each in known.stages}


async def _report(sync: JobSync, before: DagJobStatus, status: DagJobStatus) -> None:
    """Events of the conditions that have changed, but for those of a start without a problem."""
    old = {each.type: (each.status, each.reason) for each in before.conditions}
    for each in status.conditions:
        if old.get(each.type) != (each.status, each.reason) and (old or each.reason != "Accepted"):
            is_good = each.type != "Failed" and (each.type != "Ready" or each.status == "True")
            await sync.record(each.reason, each.message, is_warning=not is_good)


async def _delete_pods(sync: JobSync, tasks: Mapping[str, Tasks]) -> None:
    """Delete pods that are obsolete, that a suspended job must not have, and those beyond the number kept."""
    pods = [pod for each in tasks.values() for pod in each.obsolete]
    if sync.job.spec.suspend:
        pods += [pod for each in tasks.values() for pod in each.active.values()]
    complete = [name for name, each in tasks.items() if each.is_complete]
    needed = next_pods.with_needed_outputs(sync.job, complete)
    recorded = {each.name: each for each in sync.job.status.stages}  # as written: not what is only computed
    pods += next_pods.surplus_pods(tasks, recorded, needed, sync.context.settings.dag_kept)
    for pod in pods[: next_pods.MOST_WRITES]:
        await sync.delete_pod(pod)
    if len(pods) > next_pods.MOST_WRITES:
        sync.wake_by(sync.now)


async def _clean_up(sync: JobSync) -> JobSync:
    """Delete the pods of a job that has ended as far as they have not; delete the job when it has expired."""
    pods = sync.pods.values() or _by_stage(await list_pods(sync.context, sync.job)).values()
    left = [pod for own in pods for pod in own if not pod.has_ended and pod.deletion is None]
    for pod in left[: next_pods.MOST_WRITES]:
        await sync.delete_pod(pod)
    if len(left) > next_pods.MOST_WRITES:
        sync.wake_by(sync.now)
    expiry = job_status.expiry(sync.job)
    if expiry is not None and sync.now < expiry:
        sync.wake_by(expiry)
    elif expiry is not None:
        await _delete_job(sync)
    return sync


async def _delete_job(sync: JobSync) -> None:
    """Delete the job; Kubernetes deletes its pods."""
    meta = sync.job.metadata
    body = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": meta.uid},
        "propagationPolicy": "Background",
    }
    try:
        await sync.context.api.send("DELETE", job_path((meta.namespace, meta.name)), body)
    except MissingError:
        return


def _plan_next(sync: JobSync, status: DagJobStatus, tasks: Mapping[str, Tasks]) -> None:
    """When the job is to be synced next, whatever events arrive."""
    until = job_status.deadline(sync.job, status)
    if until is not None:
        sync.wake_by(until)
    if sync.job.spec.suspend:
        return
    for each in tasks.values():
        for moment in each.not_before.values():
            sync.wake_by(moment)
    for refusal in sync.memory.refusals.values():
        sync.wake_by(refusal.until)
