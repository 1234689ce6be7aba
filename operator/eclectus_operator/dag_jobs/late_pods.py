"""Pods of tasks that are late in a stage of their lives before they run, or in their end.

    stage         after its time                                         what is said
    creating      the job fails: its pods are refused for too long       CreatingDeadlineExceeded
    scheduling    the job fails: another pod would find no node either   SchedulingDeadlineExceeded
    pulling       the pod is replaced, rather on another node            TasksReplaced
    starting      likewise                                               TasksReplaced
    running       activeDeadlineSeconds of its template, by its kubelet
    deleting      deleted without its node, unless it has claims         PodsForced

Copies have times of their own before they run (copied_pods.py), and their end is looked at here too: also
that of a job which has ended. Their claims are for any number of nodes.

The first two have no time by default: a queue may be long. Those that are replaced are among a stage's
obsolete pods (tasks.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eclectus.api.dag_job import DagJob
from eclectus.kubeclient.api_errors import ApiError
from eclectus_operator.dag_jobs.job_status import Problem
from eclectus_operator.dag_jobs.task_pods import TaskPod
from eclectus_operator.dag_jobs.tasks import Tasks
from eclectus_operator.operator_context import NotLeadingError, Sync
from eclectus_operator.pod_stages import FORCED, LEAVING

MOST_FORCED = 50  # pods deleted without their nodes in one sync of a job
MOST_NODES = 20  # that the pods of a task avoid because others have not started there
SHOWN = 5  # pods in one event
_log = logging.getLogger(__name__)


SlowNodes = dict[tuple[str, int], frozenset[str]]
"""The nodes on which pods of tasks have not started in time, by stage and number. Losing it costs a try."""


def note_slow(known: SlowNodes, pod: TaskPod) -> None:
    """A pod is replaced that has not started in time."""
    nodes = known.get((pod.stage, pod.index), frozenset())
    if len(nodes) < MOST_NODES:
        known[pod.stage, pod.index] = nodes | {pod.node}


def overdue(
    job: DagJob, refusals: Mapping[str, tuple[float, str]], tasks: Iterable[Tasks], now: float
) -> Problem | None:
    """Why the job fails: pods were refused, or had no node, for too long; None if it does not.

    `refusals`: since when, and why, by stage. A copy without a node is withdrawn, and no trouble of its job.
    """
    most = job.spec.pod_deadlines.creating_seconds
    for stage, (since, why) in refusals.items():
        if most is not None and now - since >= most:
            message = f"no pod of stage {stage} could be created for {most:g} s: {why}"
            return Problem("CreatingDeadlineExceeded", message, is_final=True)
    for each in tasks:
        for pod in each.active.values():
            if not (pod.node or pod.copy_of) and pod.is_late(now):
                message = f"stage {each.stage.name}: {pod.late}"
                return Problem("SchedulingDeadlineExceeded", message, is_final=True)
    return None


@dataclass
class LatePods(Sync):
    """The pods of one job in one sync. `forced`: those that were deleted without their nodes before."""

    job: DagJob
    forced: set[str]

    async def force(self, pods: list[TaskPod]) -> None:
        """Delete at once what its node has not ended in time. Raises NotLeadingError."""
        self.forced &= {pod.uid for pod in pods}
        leaving = [pod for pod in pods if pod.deletion is not None]
        late = [pod for pod in leaving if pod.is_late(self.now) and pod.uid not in self.forced]
        done, kept = list[str](), list[str]()
        for pod in late[:MOST_FORCED]:
            if pod.has_claims and not pod.copy_of:
                kept.append(f"{pod.late}; it stays until then, because it has claims")
            elif await self._delete(pod):
                done.append(pod.late)
            else:
                continue
            self.forced.add(pod.uid)
        await self.report(FORCED, "deleted without an answer of their nodes: ", done)
        await self.report(LEAVING, "deleted, and not gone: ", kept)
        if len(late) > MOST_FORCED:
            self.wake_by(self.now)
        for pod in pods:
            if pod.stage_until is not None and not pod.is_late(self.now):
                self.wake_by(pod.stage_until)

    async def _delete(self, pod: TaskPod) -> bool:
        path = f"/api/v1/namespaces/{self.job.metadata.namespace}/pods/{pod.name}"
        try:
            await self.context.delete(path, pod.uid, gracePeriodSeconds=0)
        except NotLeadingError:
            raise
        except ApiError as error:
            _log.warning("%s not deleted: %s", path, error)
            return False
        _log.warning("deleted %s at once: %s", path, pod.late)
        return True

    async def report(self, reason: str, head: str, texts: list[str]) -> None:
        """One event about all of these, if there are any."""
        if texts:
            more = f"; and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
            note = head + "; ".join(texts[:SHOWN]) + more
            await self.context.record(self.job.metadata, "Reconcile", reason, note)
