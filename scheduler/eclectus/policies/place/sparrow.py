"""Batch sampling with late binding.

Ousterhout, Wendell, Zaharia, Stoica, "Sparrow: Distributed, Low Latency Scheduling", SOSP 2013: a job of
m tasks puts reservations into the lines of d * m nodes drawn at random; a node that comes to a
reservation asks for a task and gets the next one that has not started; when all have started the
reservations left over are cancelled. Nobody asks how long a line is, and yet a task never waits behind
one long line while another node is free: the first nodes to come to it win.

Departures: the engine keeps the lines, where the paper has a daemon on each node, so cancelling takes no
messages; constrained jobs (the paper's per-task sampling) draw their reservations from the nodes that
may run them; tasks of one job that arrive in several parts are sampled part by part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, ReserveMany, View
from eclectus.model.objects import Task
from eclectus.policies.shared.jobwise import Jobwise
from eclectus.policies.shared.reservations import Distinct, Ratio, draw


@dataclass(eq=False)
class Sparrow(Jobwise):
    """d * m reservations for m tasks."""

    ratio: Ratio = 2.0
    distinct: Distinct = True

    def place_job(
        self, view: View, tasks: Sequence[Task], task_class: TaskClass, rows: Rows
    ) -> Iterator[Action]:
        """As many as there are tasks, times the ratio."""
        yield ReserveMany(tuple(tasks), draw(view.rng, rows, ceil(self.ratio * len(tasks)), self.distinct))
