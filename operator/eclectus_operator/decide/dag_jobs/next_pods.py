"""Which pods of a DagJob are created next, and which that have ended are deleted.

Pods are created lazily: of stages whose parents have finished, and only as many as keep a bounded number
waiting for a node. A pod that waits costs etcd, quota and every scheduler's attention, and a longer queue of
them starts nothing earlier. The stages that are ready share that number, so that one whose pods find no
node does not stop the others.

Pods that have succeeded are kept for their logs, up to a number. Beyond it the oldest are deleted, once the
status records that they have succeeded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest

from eclectus.api.dag_job import DagJob, Stage, StageStatus
from eclectus_operator.decide.dag_jobs.tasks import Tasks, recorded_failures
from eclectus_operator.objects.dag_jobs import indexes, task_pods
from eclectus_operator.objects.dag_jobs.task_pods import TaskPod

MOST_WRITES = 50  # pods created, and deleted, in one sync of a job, so that one job does not delay the others

TasksByStage = Mapping[str, Tasks]


@dataclass(frozen=True)
class NewPod:
    """A pod to create. `before`: the pod of the attempt before, where it exists."""

    stage: Stage
    index: int
    attempt: int
    name: str
    memory_factors: Mapping[str, int] = field(default_factory=dict)
    before: TaskPod | None = None


def next_pods(
    job: DagJob, tasks: TasksByStage, most_waiting: int, blocked: Collection[str] = ()
) -> list[NewPod]:
    """The pods to create now; `blocked`: stages whose pods the API server refuses."""
    ready = [each for each in ready_stages(tasks) if each.stage.name not in blocked]
    if not ready:
        return []
    share = max(1, most_waiting // len(ready))
    found: list[NewPod] = []
    for each in ready:
        room = min(share - each.not_started, MOST_WRITES - len(found))
        candidates = _startable(each)
        found += [_new_pod(job, each, index) for index, _ in zip(candidates, range(room), strict=False)]
    return found


def ready_stages(tasks: TasksByStage) -> list[Tasks]:
    """The stages that have not finished and whose parents have."""
    return [
        each
        for each in tasks.values()
        if not each.is_complete and all(tasks[parent].is_complete for parent in each.stage.depends_on)
    ]


def with_needed_outputs(job: DagJob, complete: Collection[str]) -> set[str]:
    """The stages whose results on their nodes a stage reads that is not among the complete ones."""
    return {
        each.stage
        for stage in job.spec.stages
        if stage.name not in complete
        for each in stage.inputs
        if each.lost_with_node
    }


def surplus_pods(
    tasks: TasksByStage, recorded: Mapping[str, StageStatus], needed: Collection[str], most_kept: int
) -> list[TaskPod]:
    """The oldest pods that have ended, of those beyond `most_kept`; `needed`: stages that keep theirs."""
    ended = [
        pod
        for name, each in tasks.items()
        if name not in needed and name in recorded
        for pod in _recorded_pods(each, recorded[name])
    ]
    surplus = min(len(ended) - most_kept, MOST_WRITES)
    return nsmallest(surplus, ended, key=lambda pod: (pod.ended or 0.0, pod.name)) if surplus > 0 else []


def _recorded_pods(tasks: Tasks, recorded: StageStatus) -> Iterator[TaskPod]:
    """The pods that have ended and that nothing needs.

    The status records that their task has succeeded, or that it has failed again after them.
    """
    completed = indexes.parse(recorded.completed_indexes, tasks.stage.tasks)
    failures = recorded_failures(recorded, tasks.stage)
    for index, own in tasks.pods.items():
        for pod in own:
            is_past = index in completed or pod.attempt + 1 < failures.get(index, 0)
            if is_past and pod.has_ended and pod.deletion is None:
                yield pod


def _startable(tasks: Tasks) -> Iterator[int]:
    failed = set(tasks.failed)
    for index in range(tasks.stage.tasks):
        if not any(index in each for each in (tasks.succeeded, tasks.active, tasks.not_before, failed)):
            yield index


def _new_pod(job: DagJob, tasks: Tasks, index: int) -> NewPod:
    attempt, stage = tasks.failures.get(index, 0), tasks.stage
    names = [pod.name for pod in tasks.pods.get(index, ())]
    before = tasks.last_pod(index)
    factors = task_pods.raised(before) if before is not None else {}
    return NewPod(
        stage, index, attempt, task_pods.name(job, stage.name, index, attempt, names), factors, before
    )
