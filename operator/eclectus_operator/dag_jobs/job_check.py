"""What is wrong with a DagJob that its definition cannot know: its graph, its templates, the cluster's nodes.

The templates are checked by the API server itself: a pod of each stage is created in a dry run, once, so that
a mistake in the last stage is known when the job arrives and not when that stage starts. A job whose spec can
never run fails. One whose pods fit no node does not: an autoscaler may add a larger one. Nor does one whose
pods cannot start on their nodes: the kubelets try again for ever, and no retry of a task would help.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from eclectus.api.dag_job import DagJob, Stage
from eclectus.kube import objects as kube
from eclectus.kubeclient.api_errors import ApiError, NotDoneError, UnauthenticatedError
from eclectus.kubeclient.client import ObjectApi
from eclectus_operator import convert, room
from eclectus_operator.convert import ShapeError
from eclectus_operator.dag_jobs.job_status import Problem
from eclectus_operator.dag_jobs.task_pods import NewPod, TaskPod, factors_text
from eclectus_operator.dag_jobs.tasks import Tasks
from eclectus_operator.observed import PULL_REASONS
from eclectus_operator.operator_context import NotLeadingError
from eclectus_operator.room import Room

FORBIDDEN, INVALID = 403, 422
NOT_OF_THE_POD = (NotDoneError, NotLeadingError, UnauthenticatedError)  # any other request would fail as well
# As the API server's validation names a field. A policy that denies a request answers 422 too by default, and
# may name one in its own words; but what it denies now it may allow later.
_FIELD = re.compile(r"\b(spec|metadata)\.[A-Za-z]")
_DENIED = re.compile(r"\bdenied\b")

Sizes = dict[tuple[str, str], Room]
"""What the pods of a stage request, with these memory factors."""


def names_field(error: ApiError) -> bool:
    """Whether the API server says what is wrong with the pod itself."""
    text = error.message
    return error.status == INVALID and bool(_FIELD.search(text)) and not _DENIED.search(text)


async def template_problem(api: ObjectApi, path: str, job: DagJob, stage: Stage) -> str:
    """What the API server says against the pods of a stage, empty if nothing; `path`: of the pods.

    Only what is wrong with the pod itself: a quota, for example, may allow it when the stage starts.
    Raises ApiError where the API server did not look at the pod.
    """
    try:
        await api.send("POST", path, NewPod(job, stage).body({}), {"dryRun": "All"})
    except NOT_OF_THE_POD:
        raise
    except ApiError as error:
        return f"stages[{stage.name}].template: {error.message}" if names_field(error) else ""
    return ""


def refusal(new: NewPod, error: ApiError) -> Problem:
    """Why a pod was not created, as a problem of its stage."""
    if error.status == FORBIDDEN and "exceeded quota" in error.message:
        reason = "QuotaExceeded"
    elif error.status == FORBIDDEN or (error.status == INVALID and not names_field(error)):
        reason = "PodForbidden"
    else:
        reason = "FailedCreate" if error.status == 0 or error.status >= 500 else "PodInvalid"
    return Problem(reason, f"stage {new.stage.name}: {error.message}")


def placement_problem(
    job: DagJob, tasks: Iterable[Tasks], pods: Iterable[TaskPod], largest: list[Room], sizes: Sizes
) -> Problem | None:
    """What keeps pods from starting, or that stages request more than any node of the cluster has.

    `sizes`: what was found of them before, which is brought up to date.
    """
    found = "; ".join(_too_large(job, tasks, largest, sizes)) if largest else ""
    return _start_problem(pods) or (Problem("FitsNoNode", found) if found else None)


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


def _too_large(job: DagJob, tasks: Iterable[Tasks], largest: list[Room], sizes: Sizes) -> Iterator[str]:
    """The stages of which a pod fits no node, parents first. Of raised memory the first that does not fit."""
    for each in reversed(list(tasks)):
        for text, new in _by_factors(job, each).items():
            key = each.stage.name, text
            if key not in sizes:
                sizes[key] = _size(new)
            lacking = room.lacking_everywhere(sizes[key], largest)
            if lacking:
                raised = f", which is raised for tasks that had too little ({text})" if text else ""
                where = f"stages[{each.stage.name}]: no node of the cluster is large enough"
                yield f"{where} ({', '.join(lacking)}){raised}"
                break


def _by_factors(job: DagJob, tasks: Tasks) -> dict[str, NewPod]:
    """Pods of a stage that differ in the memory that they request, by their factors."""
    found = {"": NewPod(job, tasks.stage)}
    for index, own in tasks.pods.items():
        if index not in tasks.succeeded:
            new = NewPod(job, tasks.stage, index, 0, own)
            found.setdefault(factors_text(new.memory_factors), new)
    return found


def _size(new: NewPod) -> Room:
    """What a pod requests; nothing where that cannot be read, which is the scheduler's to report."""
    try:
        return room.wanted(convert.read(new.body({}), kube.Pod))
    except (ShapeError, ValueError):
        return {}
