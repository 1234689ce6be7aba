"""What every part of a sync of a DagJob uses, and what is remembered between two syncs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from eclectus.api.dag_job import DagJob, DagJobStatus
from eclectus.api.names import API_VERSION, DAG_JOB_LABEL, DAG_JOBS
from eclectus.kubeclient.errors import ConflictError, MissingError
from eclectus.kubeclient.listing import list_pages
from eclectus_operator.control.context import OperatorContext, record_event
from eclectus_operator.decide.dag_jobs import job_status
from eclectus_operator.decide.dag_jobs.job_status import Problem
from eclectus_operator.objects import convert, events
from eclectus_operator.objects.dag_jobs import task_pods
from eclectus_operator.objects.dag_jobs.task_pods import TaskPod

BACKOFF_SECONDS, MOST_BACKOFF_SECONDS = 10.0, 300.0  # after a refused pod of a stage, doubled with each
ALL_JOBS_PATH = f"/apis/{API_VERSION}/{DAG_JOBS}"
_log = logging.getLogger(__name__)

JobKey = tuple[str, str]
"""Namespace and name."""


@dataclass
class Refusal:
    """The API server refuses the pods of a stage; the next try is at `until`, seconds since the epoch."""

    problem: Problem
    until: float
    seconds: float


@dataclass
class JobMemory:
    """What an operator remembers of a job. Losing it costs a few requests.

    `status`: as computed last, which may not be written yet; `templates_checked`: the API server has accepted
    a pod of each stage in a dry run.
    """

    uid: str
    status: DagJobStatus | None = None
    written_at: float = float("-inf")
    templates_checked: bool = False
    refusals: dict[str, Refusal] = field(default_factory=dict)

    def refuse(self, stage: str, problem: Problem, now: float) -> None:
        """Note that a pod of the stage was refused, and when the next try is due."""
        before = self.refusals.get(stage)
        seconds = min(before.seconds * 2.0, MOST_BACKOFF_SECONDS) if before else BACKOFF_SECONDS
        self.refusals[stage] = Refusal(problem, now + seconds, seconds)


@dataclass
class JobSync:
    """One sync of one job. `pods`: by stage, as listed in this sync."""

    context: OperatorContext
    job: DagJob
    memory: JobMemory
    pods: Mapping[str, list[TaskPod]]
    pod_count: int = 0
    wake_at: float = float("inf")  # when the next sync is due, seconds since the epoch

    @property
    def now(self) -> float:
        """Seconds since the epoch."""
        return self.context.now()

    def wake_by(self, moment: float) -> None:
        """Sync again at this moment at the latest."""
        self.wake_at = min(self.wake_at, moment)

    @property
    def pods_path(self) -> str:
        """Path of the pods of the job's namespace."""
        return f"/api/v1/namespaces/{self.job.metadata.namespace}/pods"

    async def write_status(self, status: DagJobStatus) -> None:
        """Write the status if it has changed, and the change is urgent or due. Raises ApiError."""
        self.memory.status = status
        if status == self.job.status:
            return
        due = self.memory.written_at + job_status.WRITE_SECONDS
        if self.now < due and not job_status.is_urgent(self.job.status, status):
            self.wake_by(due)
            return
        path = f"{job_path(key_of(self.job))}/status"
        answer = await self.context.api.send("PATCH", path, job_status.patch(self.job, status))
        if status.has_finished and not self.job.status.has_finished:
            self.context.metrics.dag_jobs.ended(job_status.end_reason(status))
        self.job = convert.read(answer, DagJob)
        self.memory.status, self.memory.written_at = None, self.now

    async def delete_pod(self, pod: TaskPod) -> None:
        """Delete the pod with this uid, and no other of its name. Raises ApiError."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": pod.uid}}
        try:
            await self.context.api.send("DELETE", f"{self.pods_path}/{pod.name}", body)
        except (MissingError, ConflictError):
            return  # it is gone, and perhaps another one has its name
        _log.info("deleted %s/%s", self.job.metadata.namespace, pod.name)

    async def record(self, reason: str, note: str, *, is_warning: bool = True) -> None:
        """Write an event about the job; one that cannot be written is logged and dropped."""
        event = events.of_job(self.job.metadata, reason, note, is_warning=is_warning)
        await record_event(self.context, event)


def key_of(job: DagJob) -> JobKey:
    """The job's namespace and name."""
    return job.metadata.namespace, job.metadata.name


def job_path(key: JobKey) -> str:
    """The path of a DagJob."""
    namespace, name = key
    return f"/apis/{API_VERSION}/namespaces/{namespace}/{DAG_JOBS}/{name}"


async def list_pods(context: OperatorContext, job: DagJob) -> list[TaskPod]:
    """The pods of a job's tasks, read page by page. Raises ApiError, ShapeError."""
    path = f"/api/v1/namespaces/{job.metadata.namespace}/pods"
    query = {"labelSelector": f"{DAG_JOB_LABEL}={job.metadata.name}"}
    pages = list_pages(context.api, path, query)
    read = [task_pods.read(each, job) async for page in pages for each in page]
    return [pod for pod in read if pod is not None]
