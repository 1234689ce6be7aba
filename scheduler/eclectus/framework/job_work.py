"""How much work is left in each job: kept if a policy asks by `wants_work`, and not otherwise.

A pod may say how much work of its job had not begun when it was submitted (`Task.job_work`). What the
youngest pod says counts, less the estimates of the pods that have begun since. A figure that has been
heard before is no news: pods of one template all carry the same. A job that gives no figure is the sum
of its waiting pods' estimates. All errors are towards too much, until the job's next pod is submitted:
a restart forgets what has begun, and pods that are deleted unbegun stay in their job's figure.
"""

from __future__ import annotations

from math import inf

from eclectus.model.objects import Task


class _Job:
    """One job that has pods pending."""

    __slots__ = ("figure", "left", "pending")

    def __init__(self) -> None:
        self.pending = 0
        self.left: float | None = None  # seconds; None while nothing is known
        self.figure = (-inf, 0.0)  # created and job_work of the pod whose figure counts


class JobWork:
    """Seconds of work that has not begun, by job; a pod without a job is a job of its own."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._job_of: dict[str, str] = {}  # uid -> job as counted: pods may be adopted by another owner

    def left(self, task: Task) -> float:
        """Work of the task's job that has not begun, seconds; inf if nobody has said."""
        job = self._jobs.get(self._job_of.get(task.uid, ""))
        return inf if job is None or job.left is None else max(job.left, 0.0)

    def appear(self, task: Task) -> None:
        """The pod is pending, and was not before."""
        name = self._job_of[task.uid] = task.job or task.uid
        job = self._jobs.setdefault(name, _Job())
        job.pending += 1
        created, figure = job.figure
        if task.job_work is None:
            if task.estimate is not None and created == -inf:
                job.left = (job.left or 0.0) + task.estimate
        elif task.job_work != figure and (task.created, task.job_work) > job.figure:
            job.figure, job.left = (task.created, task.job_work), task.job_work

    def begin(self, task: Task, times: int = 1) -> None:
        """The pod has a node; with times = -1: its bind was refused, and it waits again."""
        job = self._jobs[self._job_of[task.uid]]
        if job.left is not None:
            job.left -= times * (task.estimate or 0.0)

    def vanish(self, task: Task) -> None:
        """The pod is pending no more: bound, ended or gone."""
        name = self._job_of.pop(task.uid)
        job = self._jobs[name]
        job.pending -= 1
        if not job.pending:
            del self._jobs[name]
