"""Why the pods of a job wait: those that are alike are explained once, by one of them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from eclectus.engine.reports import FitErrors
from eclectus.engine.state import State
from eclectus.explain.pod import state_of, waiting
from eclectus.feasibility.task_class import TaskClass
from eclectus.model.explanation import AlikePods, JobExplanation, WaitingState
from eclectus.model.objects import Task
from eclectus.model.reservation import ClassKey

GROUPS_MOST = 8  # explained of one job, each in milliseconds on 15,000 nodes

Label = tuple[str, str]
Group = tuple[WaitingState, ClassKey]


def job_explanation(
    state: State, job: tuple[str, str], labels: Collection[Label], now: float
) -> JobExplanation:
    """The answer about a job; `now` in seconds, not before the last step. O(pods + groups times nodes).

    `job`: its namespace and name. `labels`: whichever of these a pod has, it is one of the job.
    """
    namespace, name = job
    uid = _uid(state, namespace, labels)
    if not uid:
        summary = "this scheduler knows no pod of such a job"
        return JobExplanation(namespace=namespace, name=name, known=False, summary=summary)
    # A pod of another namespace may name the job's uid too: nobody verifies that, and it is not of the job.
    own, assumed, nominated = (uid, namespace), state.placed.assumed, state.placed.is_nominated
    of_job = (task for task in state.pending.values() if (task.job, task.namespace) == own)
    pods = [task for task in of_job if task.uid not in assumed]
    placed = sum(
        (task.job, task.namespace) == own and not nominated(task.uid) for task in state.placed.tasks()
    )
    groups: dict[Group, list[Task]] = {}
    for task in pods:
        groups.setdefault((state_of(state, task), (task.spec, task.workload)), []).append(task)
    largest = sorted(groups.items(), key=lambda group: -len(group[1]))[:GROUPS_MOST]
    explained = tuple(_alike(state, where, alike, now) for (where, _), alike in largest)
    return JobExplanation(
        namespace=namespace,
        name=name,
        known=True,
        summary=f"{len(pods)} of its pods wait, and {placed} are on nodes",
        waiting_pods=len(pods),
        placed_pods=placed,
        groups=explained,
        not_listed=len(pods) - sum(group.pods for group in explained),
    )


def _uid(state: State, namespace: str, labels: Collection[Label]) -> str:
    """The job's uid by the first pod that has one of the labels; empty if there is none."""
    for task in chain(state.pending.values(), state.placed.tasks()):
        if task.namespace == namespace and task.job and any(pair in labels for pair in task.labels):
            return task.job
    return ""


def _alike(state: State, where: WaitingState, pods: list[Task], now: float) -> AlikePods:
    task = pods[0]
    task_class = TaskClass(state.cluster, task.spec, task.workload)
    reason = waiting(state, task, task_class, now).reason
    message = "" if task_class.fits_now_count else FitErrors(state).message(task, task_class)
    return AlikePods(where, len(pods), reason, message, task.name)
