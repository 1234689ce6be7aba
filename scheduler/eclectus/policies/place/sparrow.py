"""Sparrow: batch sampling with late binding.

Ousterhout, Wendell, Zaharia, Stoica, "Sparrow: Distributed, Low Latency Scheduling", SOSP 2013. A job of m
tasks puts reservations into the queues of d * m nodes drawn at random. A node that reaches a reservation
requests a task and gets the next one of the job that has not started. When all tasks have started, the
remaining reservations are cancelled. Queue lengths are not asked for, and still a task does not wait in a
long queue while another sampled node is free.

Departures:
- the engine keeps the node queues, where the paper has a daemon on each node, so cancelling needs no
  messages;
- the reservations of a job with constraints are drawn from the nodes that may run it, for all its tasks
  together, where the paper samples for each task;
- a node serves its queue in order of arrival; the paper's may have queues by priority or by user, in fair
  shares;
- tasks of one job that arrive at different times are sampled separately, because the size of the job is not
  known in advance.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from eclectus.framework import Action, ReserveMany, Rows, TaskClass, View, setting
from eclectus.maths.sampling import draw_rows
from eclectus.policies.shared import DISTINCT, RATIO, ByJob, Tasks


@dataclass(eq=False)
class Sparrow(ByJob):
    """Batch sampling: d * m reservations for a job of m tasks, with late binding."""

    ratio: float = setting(2.0, RATIO)
    distinct: bool = setting(True, DISTINCT)

    def place_job(self, view: View, tasks: Tasks, task_class: TaskClass, rows: Rows) -> Iterator[Action]:
        """`ratio` reservations for each task, on random nodes."""
        drawn = draw_rows(view.rng, rows, ceil(self.ratio * len(tasks)), self.distinct)
        yield ReserveMany(tuple(tasks), drawn)
