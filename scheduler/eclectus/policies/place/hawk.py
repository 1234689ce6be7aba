"""Hawk: long jobs are placed centrally, short ones by batch sampling.

Delgado, Dinu, Kermarrec, Zwaenepoel, "Hawk: Hybrid Datacenter Scheduling", USENIX ATC 2015. A long task joins
the node queue of least estimated wait in the long partition. A short job puts reservations on random nodes of
the whole cluster, as in Sparrow. The third part of Hawk, task stealing, is `line: {policy: stealing}`.

Departures:
- a task is long by its own estimate, and short without one; in the paper a job is, by the mean of its tasks;
- the engine keeps the node queues, where the paper has a daemon on each node, so messages take no time;
- the central part estimates waits from long tasks alone, as the published simulator does;
- the published simulator draws with replacement; where constraints leave no more nodes than reservations,
  here each of them gets its share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from eclectus.framework import ReserveMany, Rows, Task, View
from eclectus.policies.shared import Hybrid


@dataclass(eq=False)
class Hawk(Hybrid):
    """Long tasks centrally; short jobs by batch sampling, as in Sparrow."""

    def reserve(self, view: View, tasks: Sequence[Task], rows: Rows) -> ReserveMany:
        """`ratio` reservations for each task, on random nodes."""
        return ReserveMany(tuple(tasks), self.draw(view, rows, ceil(self.ratio * len(tasks))))
