"""Short jobs keep away from nodes with long work, and stay where they have begun.

Delgado, Didona, Dinu, Zwaenepoel, "Job-aware Scheduling in Eagle: Divide and Stick to Your Probes",
SoCC 2016. Long tasks are placed centrally as in Hawk. A short job of m tasks probes max(20, 2 m) nodes; one
that runs or holds long work refuses and answers with the map of all nodes that do (succinct state
sharing); refused probes are drawn again from the others; what is refused in the last round goes to the
nodes that take no long work at all. A probe stays at its node until its job has nothing left to start
(sticky batch probing). The lines are served by `srpt`.

By construction no short task ever waits behind a long one. Departures: questions and answers take no
time, so the map is never old (the paper's IdealEagle) and the second round is never refused: the
fallback is left for when every node has long work; where a constrained job may use none of the short
partition, it waits behind long work after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.framework import ReserveMany, View
from eclectus.model.objects import Task
from eclectus.model.settings import Setting
from eclectus.policies.shared.hybrid import Hybrid
from eclectus.policies.shared.reservations import draw


@dataclass(eq=False)
class Eagle(Hybrid):
    """Divide, and stick to your probes."""

    least_probes: Annotated[int, Setting("probes a short job has at least", why="the paper's", least=1)] = 20

    def probe(self, view: View, tasks: Sequence[Task], rows: Rows) -> ReserveMany:
        """Probes that keep away from long work, and stay."""
        self.long.refresh(view)
        return ReserveMany(tuple(tasks), self._probed(view, rows, len(tasks)), sticky=True)

    def _probed(self, view: View, rows: Rows, count: int) -> tuple[int, ...]:
        """Nodes for the probes of a job of `count` tasks."""
        # 1. Probes go anywhere.
        probes = max(self.least_probes, ceil(self.ratio * count))
        drawn = np.array(draw(view.rng, rows, probes, self.distinct))
        refused = self.long.any_at(drawn)
        if not refused.any():
            return tuple(drawn.tolist())
        # 2. Those refused are drawn again by the map that came with the refusals.
        free = rows[~self.long.any_at(rows)]
        # 3. Where every node has long work, what is left are the nodes that will never take more of it.
        others = free if len(free) else self.rows_for_short_alone(view, rows)
        again = draw(view.rng, others if len(others) else rows, int(refused.sum()), self.distinct)
        return (*drawn[~refused].tolist(), *again)
