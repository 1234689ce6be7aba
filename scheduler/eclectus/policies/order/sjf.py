"""Shortest job first (SJF), where the length of a job is its remaining critical path.

Smith, "Various optimizers for single-stage production", 1956, for shortest first; Kelley, Walker,
"Critical-Path Planning and Scheduling", 1959, for the length. The job whose remaining critical path is the
shortest goes first. Within a job the task with the longest path to the end of the job goes first, as in list
scheduling by bottom levels (Hu, "Parallel sequencing and assembly line problems", 1961). `Task.path` is that
path; without it, the task's estimate is used.

Departures:
- a job is as long as the longest path among its tasks that can be placed in this scheduling cycle. Running
  tasks and tasks without room anywhere do not count, because the scheduler does not know their paths here.
- a task without path and estimate goes last, so that leaving out the estimate gives no advantage.
- `spec.priority` is compared before the length.
"""

from dataclasses import dataclass
from math import inf

from eclectus.framework import Order, Task, View


@dataclass(frozen=True)
class ShortestJob(Order):
    """Priority, then the job with the shortest critical path, then age."""

    def group(self, task: Task) -> str:
        """The job; a pod without one is a job of its own."""
        return task.job or task.uid

    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Within a job: priority, then the longest path, then age."""
        return (-task.priority, -path(task), task.created, serial)

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...]:
        """By priority, then by the path of the job's first task, which is its longest, then by age."""
        return (-head.priority, path(head), head.created)


def path(task: Task) -> float:
    """Seconds from the start of the task to the end of its job; inf if unknown."""
    known = task.path if task.path is not None else task.estimate
    return inf if known is None else known
