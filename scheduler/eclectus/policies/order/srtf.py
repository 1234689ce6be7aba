"""Shortest remaining time first (SRTF): the job with the least remaining work goes first.

Schrage, "A proof of the optimality of the shortest remaining processing time discipline", 1968. For jobs of
many tasks the remaining time is taken as the remaining work, as in Tetris (Grandl et al., SIGCOMM 2014) and
Carbyne (Grandl et al., OSDI 2016): the seconds of all tasks of the job that have not started.

Departures:
- running tasks are not preempted;
- the seconds are not weighted by the resources of a task, because an annotation on a pod cannot know the
  cluster's capacity;
- a job without any information goes last;
- `spec.priority` is compared before the remaining work.
"""

from dataclasses import dataclass

from eclectus.framework import Order, OrderTraits, Task, View


@dataclass(frozen=True)
class LeastWorkLeft(Order):
    """Priority, then the job with the least remaining work, then age."""

    traits = OrderTraits(needs=frozenset({"work"}))

    def group(self, task: Task) -> str:
        """The job; a pod without one is a job of its own."""
        return task.job or task.uid

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...]:
        """By priority, then by the work of the job that has not started, without what was just placed."""
        return (-head.priority, view.work_left(head))
