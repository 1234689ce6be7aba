"""The state of a stage's tasks: from what the status records and from the pods that exist.

    recorded     its pods                         the task
    succeeded    any                              has succeeded; pods that still run are obsolete
    not          one has succeeded                has succeeded
    not          one runs or waits                goes on; if two do, the later one is obsolete
    not          one is being deleted             waits until that is gone, or overdue by a minute
    not          the last one failed by itself    runs again after a back-off, or has failed for good
    not          the last one was preempted,      runs again at once; that does not count as a failure
                 evicted or lost with its node
    not          none                             runs again: somebody deleted its pod

The attempt on a pod is the number of failures before it. So a failure is counted once, whatever crashes: the
failures of a task are what is recorded, or what its pods show if that is more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from eclectus.api.dag_job import FailedTasks, Stage, StageStatus
from eclectus_operator.objects.dag_jobs import indexes
from eclectus_operator.objects.dag_jobs.task_pods import TaskPod

BACKOFF_SECONDS, MOST_BACKOFF_SECONDS = 10.0, 360.0  # after the first failure, doubled with each; as of Jobs
OVERDUE_SECONDS = 60.0  # after its grace period a pod that is being deleted is replaced: its node is silent


@dataclass(frozen=True)
class Tasks:
    """The tasks of a stage by number.

    `failures`: how often each has failed that has; `active`: the pod that runs or waits, where there is one;
    `not_before`: when a task may run again, of those that must wait; `obsolete`: pods to delete; `pods`: all
    that exist.
    """

    stage: Stage
    succeeded: frozenset[int]
    failures: Mapping[int, int]
    active: Mapping[int, TaskPod]
    not_before: Mapping[int, float]
    obsolete: tuple[TaskPod, ...]
    pods: Mapping[int, tuple[TaskPod, ...]]
    run_seconds: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all have succeeded."""
        return len(self.succeeded) == self.stage.tasks

    @cached_property
    def failed(self) -> tuple[int, ...]:
        """The tasks that have failed for good."""
        most = self.stage.retries
        return tuple(i for i, times in self.failures.items() if times > most and i not in self.succeeded)

    @cached_property
    def running(self) -> int:
        """How many tasks run on a node."""
        return sum(pod.phase == "Running" for pod in self.active.values())

    @property
    def not_started(self) -> int:
        """How many pods exist that have not started."""
        return len(self.active) - self.running

    def last_pod(self, index: int) -> TaskPod | None:
        """The pod of a task's last attempt, of those that exist."""
        return max(self.pods.get(index, ()), key=lambda pod: (pod.attempt, pod.created), default=None)

    def status(self) -> StageStatus:
        """The stage's status, without its estimate."""
        count, succeeded, failed = self.stage.tasks, len(self.succeeded), len(self.failed)
        by_failures: dict[int, list[int]] = {}
        for index, times in self.failures.items():
            by_failures.setdefault(times, []).append(index)
        return StageStatus(
            self.stage.name,
            waiting=count - succeeded - failed - self.running,
            running=self.running,
            succeeded=succeeded,
            failed=failed,
            retried=sum(min(times, self.stage.retries) for times in self.failures.values()),
            completed_indexes=indexes.written(self.succeeded),
            failed_tasks=tuple(
                FailedTasks(times, indexes.written(found)) for times, found in sorted(by_failures.items())
            ),
            run_seconds=self.run_seconds,
        )


def assess(
    stage: Stage, recorded: StageStatus, pods: Iterable[TaskPod], now: float, *, outputs_needed: bool = False
) -> Tasks:
    """The tasks of a stage; `pods`: of this stage.

    `outputs_needed`: a stage that has not finished reads what the pods of this one have left on their
    nodes, so that a task whose pod is gone has not succeeded any more.
    """
    by_task: dict[int, list[TaskPod]] = {}
    for pod in pods:
        by_task.setdefault(pod.index, []).append(pod)
    failures = _failures(stage, recorded, by_task)
    seen = {index for index, own in by_task.items() if any(pod.phase == "Succeeded" for pod in own)}
    completed = indexes.parse(recorded.completed_indexes, stage.tasks)
    succeeded = frozenset(seen if outputs_needed else completed | seen)
    active, obsolete, not_before = dict[int, TaskPod](), list[TaskPod](), dict[int, float]()
    for index, own in by_task.items():
        first, others = _active(own, failures.get(index, 0), has_succeeded=index in succeeded)
        obsolete += others
        if first is not None:
            active[index] = first
        elif index not in succeeded and (until := _not_before(own)) > now:
            not_before[index] = until
    return Tasks(
        stage,
        succeeded,
        failures,
        active,
        not_before,
        tuple(obsolete),
        {index: tuple(own) for index, own in by_task.items()},
        _median_run(by_task.values()) or recorded.run_seconds,
    )


def recorded_failures(recorded: StageStatus, stage: Stage) -> dict[int, int]:
    """How often each task has failed that has, as the status says."""
    return {
        index: each.failures
        for each in recorded.failed_tasks
        for index in indexes.parse(each.indexes, stage.tasks)
    }


def _failures(stage: Stage, recorded: StageStatus, by_task: Mapping[int, list[TaskPod]]) -> dict[int, int]:
    known = recorded_failures(recorded, stage)
    for index, own in by_task.items():
        shown = max(pod.attempt + pod.has_failed for pod in own)
        if shown > known.get(index, 0):
            known[index] = shown
    return known


def _active(
    own: Iterable[TaskPod], failures: int, *, has_succeeded: bool
) -> tuple[TaskPod | None, list[TaskPod]]:
    """The pod of a task that goes on, and those that still wait or run and are obsolete."""
    alive = [pod for pod in own if not pod.has_ended and pod.deletion is None]
    alive.sort(key=lambda pod: (-pod.attempt, pod.created, pod.name))
    goes_on = bool(alive) and not has_succeeded and alive[0].attempt >= failures
    return (alive[0], alive[1:]) if goes_on else (None, alive)


def _not_before(own: Iterable[TaskPod]) -> float:
    """When a task without an active pod may run again."""
    until = 0.0
    for pod in own:
        if not pod.has_ended and pod.deletion is not None:
            until = max(until, pod.deletion + OVERDUE_SECONDS)
        if pod.has_failed and pod.ended is not None:
            backoff = min(BACKOFF_SECONDS * 2.0**pod.attempt, MOST_BACKOFF_SECONDS)
            until = max(until, pod.ended + backoff)
    return until


def _median_run(by_task: Iterable[list[TaskPod]]) -> float | None:
    """The median run time of the pods that have succeeded, to a thousandth of a second."""
    runs = [
        pod.run_seconds
        for own in by_task
        for pod in own
        if pod.phase == "Succeeded" and pod.run_seconds is not None
    ]
    return round(median(runs), 3) if runs else None
