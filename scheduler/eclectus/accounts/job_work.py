"""How much work is left in each job. Kept only if a policy needs `work`.

A pod may state how much work of its job had not started when the pod was submitted (`Task.job_work`). The
figure of the youngest pod counts, less the estimates of the pods that have started since. A figure equal to
the one that counts is ignored, because all pods of one template carry the same figure. The work of a job
without a figure is the sum of the estimates of its waiting pods.

Errors overestimate, until the job's next pod is submitted: after a restart it is unknown which pods have
started since, and pods that are deleted before they start stay in their job's figure.
"""

from __future__ import annotations

from math import inf

from eclectus.cluster.changelog import ChangeLog
from eclectus.model.objects import Task

MAX_CHANGES = 8192  # of jobs that are remembered


class _Job:
    """One job that has pods pending."""

    __slots__ = ("figure", "left", "pending")

    def __init__(self) -> None:
        self.pending = 0
        self.left: float | None = None  # seconds; None while nothing is known
        self.figure = (-inf, 0.0)  # created and job_work of the pod whose figure counts


class JobWork:
    """Seconds of work that has not started, by job; a pod without a job is a job of its own."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._job_of: dict[str, str] = {}  # uid -> job under which the pod was added: its owner may change
        self.changes = ChangeLog[str](MAX_CHANGES)  # jobs whose work left has changed

    def left(self, task: Task) -> float:
        """Work of the task's job that has not started, seconds; inf if it is unknown."""
        job = self._jobs.get(self._job_of.get(task.uid, ""))
        return inf if job is None or job.left is None else max(job.left, 0.0)

    def add(self, task: Task) -> None:
        """The pod has become pending, or has another job than when it was added."""
        if task.uid in self._job_of:
            self.remove(task)
        name = self._job_of[task.uid] = task.job or task.uid
        job = self._jobs.setdefault(name, _Job())
        job.pending += 1
        self.changes.record(name)
        created, figure = job.figure
        if task.job_work is None:
            if task.estimate is not None and created == -inf:
                job.left = (job.left or 0.0) + task.estimate
        elif task.job_work != figure and (task.created, task.job_work) > job.figure:
            job.figure, job.left = (task.created, task.job_work), task.job_work

    def start(self, task: Task) -> None:
        """The pod has got a node."""
        self._subtract(task, task.estimate or 0.0)

    def undo_start(self, task: Task) -> None:
        """The bind of the pod was refused, and the pod waits again."""
        self._subtract(task, -(task.estimate or 0.0))

    def remove(self, task: Task) -> None:
        """The pod is no longer pending: bound, ended or deleted."""
        name = self._job_of.pop(task.uid)
        job = self._jobs[name]
        job.pending -= 1
        if not job.pending:
            del self._jobs[name]

    def _subtract(self, task: Task, seconds: float) -> None:
        name = self._job_of[task.uid]
        job = self._jobs[name]
        if job.left is not None:
            job.left -= seconds
            self.changes.record(name)
