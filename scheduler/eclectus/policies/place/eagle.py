"""Eagle: short jobs avoid nodes with long tasks, and reservations stay until their job is done.

Delgado, Didona, Dinu, Zwaenepoel, "Job-aware Scheduling in Eagle: Divide and Stick to Your Probes", SoCC
2016. Long tasks are placed centrally, as in Hawk. A short job of m tasks sends probes (here: reservations)
to max(20, 2 m) nodes. A node that runs or queues long tasks rejects the probe and answers with a bit vector
of all nodes that do (succinct state sharing). Rejected probes are sent again to other nodes; what is
rejected again goes to nodes that never get long tasks. A reservation stays at its node until its job has no
task left to start (sticky batch probing). Use it with `line: {policy: srpt}`.

A short task never waits behind a long one, with one exception: a short job whose constraints exclude all
nodes of the short partition, while all others have long tasks.

Departures:
- a task is long by its own estimate, and short without one; in the paper a job is, by the mean of its tasks;
- the engine keeps the node queues, and messages take no time, so the bit vector is never outdated (IdealEagle
  in the paper) and the second round is never rejected. Nodes without long tasks are therefore used up first,
  and the short partition only if there is none;
- the paper has no constraints. Here all probes of a job go to nodes that may run it; if these are no more
  than its probes, each gets one, which is enough since reservations stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from eclectus.framework import ReserveMany, Rows, Task, View, setting
from eclectus.policies.shared import Hybrid


@dataclass(eq=False)
class Eagle(Hybrid):
    """Long tasks centrally; short jobs by sticky reservations on nodes without long tasks."""

    least_probes: int = setting(20, "least number of reservations of a short job", "as in the paper", least=1)

    def reserve(self, view: View, tasks: Sequence[Task], rows: Rows) -> ReserveMany:
        """Sticky reservations on nodes without long tasks, as far as there are such nodes."""
        self.long.refresh(view)
        return ReserveMany(tuple(tasks), self._draw(view, rows, len(tasks)), sticky=True)

    def _draw(self, view: View, rows: Rows, count: int) -> tuple[int, ...]:
        """Nodes for the reservations of a job of `count` tasks that may run on `rows`."""
        # 1. Probes go to random nodes; where there are no more nodes than probes, to each of them once.
        probes = min(max(self.least_probes, ceil(self.ratio * count)), len(rows))
        drawn = np.array(self.draw(view, rows, probes))
        rejected = self.long.any_at(drawn)
        if not rejected.any():
            return tuple(drawn.tolist())
        # 2. Rejected probes go to nodes without long tasks, unless each of these has a probe already.
        free = rows[~self.long.any_at(rows)]
        accepted = tuple(drawn[~rejected].tolist())
        if len(free) and probes == len(rows):
            return accepted
        # 3. If there is no such node, they go to nodes that never get long tasks.
        others = free if len(free) else self.rows_for_short_alone(view, rows)
        others = others if len(others) else rows
        return (*accepted, *self.draw(view, others, min(int(rejected.sum()), len(others))))
