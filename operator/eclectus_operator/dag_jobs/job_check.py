"""What is wrong with a DagJob that its definition cannot know: its graph, its templates, the cluster's nodes.

The templates are checked by the API server itself: a pod of each stage is created in a dry run, once, so that
a mistake in the last stage is known when the job arrives and not when that stage starts. A job whose spec can
never run fails. One whose pods fit no node does not: an autoscaler may add a larger one. Nor does one whose
pods cannot start on their nodes: the kubelets try again for ever, and no retry of a task would help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eclectus.api.dag_job import DagJob, Stage
from eclectus.kube import objects as kube
from eclectus.kube.requests import FieldError, requested
from eclectus.kubeclient.api_errors import RejectedError
from eclectus.kubeclient.client import ObjectApi
from eclectus_operator import convert, room
from eclectus_operator.convert import ShapeError
from eclectus_operator.dag_jobs.job_status import Problem
from eclectus_operator.dag_jobs.task_pods import NewPod, TaskPod
from eclectus_operator.observed import PULL_REASONS
from eclectus_operator.room import Room

INVALID = 422  # the status by which the API server refuses an object for what it is


async def template_problems(api: ObjectApi, path: str, job: DagJob, stage: Stage) -> list[str]:
    """What the API server says against the pods of a stage; `path`: of the pods. Raises ApiError.

    Only what is wrong with the pod itself: a quota, for example, may allow it when the stage starts.
    """
    try:
        await api.send("POST", path, NewPod(job, stage).body({}), {"dryRun": "All"})
    except RejectedError as error:
        return [f"stages[{stage.name}].template: {error.message}"] if error.status == INVALID else []
    return []


def placement_problem(job: DagJob, pods: Iterable[TaskPod], largest: list[Room]) -> Problem | None:
    """What keeps pods from starting, or that stages request more than any node of the cluster has."""
    return _start_problem(pods) or _size_problem(job, largest)


def _start_problem(pods: Iterable[TaskPod]) -> Problem | None:
    """What keeps pods from starting, of the first stage by name with such a pod."""
    stuck = {(pod.stage, pod.name): pod.stuck for pod in pods if pod.stuck is not None}
    if not stuck:
        return None
    stage, name = min(stuck)
    first, more = stuck[stage, name], sum(other == stage for other, _ in stuck) - 1
    reason = "ImageNotPulled" if first.reason in PULL_REASONS else "ContainerNotCreated"
    cause = f"{first.reason}: {first.message}" if first.message else first.reason
    others = f", nor do {more} other pods" if more else ""
    where = f"stage {stage}: container {first.container} of pod {name}"
    return Problem(reason, f"{where} does not start{others}: {cause}")


def _size_problem(job: DagJob, largest: list[Room]) -> Problem | None:
    found = "; ".join(_too_large(job.spec.stages, largest)) if largest else ""
    return Problem("FitsNoNode", found) if found else None


def _too_large(stages: Iterable[Stage], largest: list[Room]) -> Iterator[str]:
    for stage in stages:
        try:
            pod = convert.read({"metadata": {}, "spec": stage.template["spec"]}, kube.Pod)
            wanted = requested(pod).amounts
        except (FieldError, ShapeError):
            continue  # a quantity that cannot be read is the scheduler's to report
        if not room.could_ever_fit(pod, largest):
            lacking = min((room.lacking(wanted, each) for each in largest), key=len)
            yield f"stages[{stage.name}]: no node of the cluster is large enough ({', '.join(lacking)})"
