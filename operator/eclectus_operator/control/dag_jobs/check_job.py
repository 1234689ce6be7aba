"""What is wrong with a DagJob that its definition cannot know: its graph, its templates, the cluster's nodes.

The templates are checked by the API server itself: a pod of each stage is created in a dry run, once, so that
a mistake in the last stage is known when the job arrives and not when that stage starts. A job whose spec can
never run fails. One whose pods fit no node does not: an autoscaler may add a larger one.
"""

from __future__ import annotations

from collections.abc import Iterator

from eclectus.api.dag_job import Stage
from eclectus.kube import objects as kube
from eclectus.kube.requests import FieldError, requested
from eclectus.kubeclient.errors import RejectedError
from eclectus_operator.control.dag_jobs.context import JobSync
from eclectus_operator.decide import room
from eclectus_operator.decide.dag_jobs import graph
from eclectus_operator.decide.dag_jobs.job_status import Problem
from eclectus_operator.decide.dag_jobs.stuck_pods import start_problem
from eclectus_operator.decide.room import Room
from eclectus_operator.objects import convert
from eclectus_operator.objects.convert import ShapeError
from eclectus_operator.objects.dag_jobs import pods

INVALID = 422  # the status by which the API server refuses an object for what it is


async def find_problem(sync: JobSync) -> Problem | None:
    """Why the job cannot run, or not now; None if it can. Raises ApiError."""
    wrong = graph.problems(sync.job.spec)
    if wrong:
        return Problem("InvalidSpec", "; ".join(wrong), is_final=True)
    if not sync.memory.templates_checked and not sync.job.status.start_time:
        wrong = [text for stage in sync.job.spec.stages for text in await _of_template(sync, stage)]
        if wrong:
            return Problem("InvalidTemplate", "; ".join(wrong), is_final=True)
        sync.memory.templates_checked = True
    if sync.memory.refusals:
        return next(iter(sync.memory.refusals.values())).problem
    not_started = start_problem(sync.pods)
    if not_started is not None:
        return not_started
    too_large = list(_too_large(sync, await sync.context.pool.capacities()))
    return Problem("FitsNoNode", "; ".join(too_large)) if too_large else None


async def _of_template(sync: JobSync, stage: Stage) -> list[str]:
    """What the API server says against the pods of a stage.

    Only what is wrong with the pod itself: a quota, for example, may allow it when the stage starts.
    """
    name = f"{sync.job.metadata.name}-{stage.name}-template"
    body = pods.pod(sync.job, stage, name, 0, 0, memory_factors={}, estimates={})
    try:
        await sync.context.api.send("POST", sync.pods_path, body, {"dryRun": "All"})
    except RejectedError as error:
        return [f"stages[{stage.name}].template: {error.message}"] if error.status == INVALID else []
    return []


def _too_large(sync: JobSync, largest: list[Room]) -> Iterator[str]:
    """The stages whose pods request more than any node of the cluster has."""
    if not largest:
        return  # no node that can be read: nothing is known
    for stage in sync.job.spec.stages:
        try:
            pod = convert.read({"metadata": {}, "spec": stage.template["spec"]}, kube.Pod)
            wanted = requested(pod).amounts
        except (FieldError, ShapeError):
            continue  # a quantity that cannot be read is the scheduler's to report
        if not room.could_ever_fit(pod, largest):
            lacking = min((room.lacking(wanted, each) for each in largest), key=len)
            yield f"stages[{stage.name}]: no node of the cluster is large enough ({', '.join(lacking)})"
