"""Long jobs placed centrally, short ones by sampling, and idle nodes that steal.

Delgado, Dinu, Kermarrec, Zwaenepoel, "Hawk: Hybrid Datacenter Scheduling", USENIX ATC 2015. A long task
joins the line of least estimated wait in the long partition; a short job samples all nodes as Sparrow
does. A node that has nothing to do asks up to ten random nodes of the long partition and takes over the
short reservations that stand behind a long task there.

Departures: the central part counts the long work it has placed itself, as in the published simulator;
on nodes of several slots a node steals when nothing but services runs there; a thief takes only what
it may run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from math import ceil
from typing import Annotated

from eclectus.cluster.changelog import Rows
from eclectus.framework import Line, ReserveMany, View
from eclectus.model.objects import Task
from eclectus.model.reservation import Reservation
from eclectus.model.settings import Setting
from eclectus.policies.shared.hybrid import Hybrid
from eclectus.policies.shared.partition import Partition
from eclectus.policies.shared.reservations import draw


@dataclass(eq=False)
class Hawk(Hybrid):
    """Central for long jobs, Sparrow for short ones."""

    def probe(self, view: View, tasks: Sequence[Task], rows: Rows) -> ReserveMany:
        """So many a task, anywhere."""
        return ReserveMany(tuple(tasks), draw(view.rng, rows, ceil(self.ratio * len(tasks)), self.distinct))


@dataclass(eq=False)
class Stealing(Partition, Line):
    """First come, first served; and who has nothing to do takes short work from behind long work."""

    attempts: Annotated[int, Setting("nodes an idle node asks", why="the paper's", least=1, most=1000)] = 10

    def next(self, view: View, row: int, line: Sequence[Reservation]) -> Reservation | None:
        """The first."""
        return line[0]

    def steal(self, view: View, row: int) -> Iterator[tuple[int, Reservation]]:
        """From the first of the nodes asked that has something to take."""
        if any(not task.spec.long_running for task, _ in view.placed_pods(row)):
            return
        victims = self.rows_for_long(view, view.cluster.present.nonzero()[0])
        for _ in range(self.attempts):
            victim = int(victims[view.rng.randrange(len(victims))])
            loot = [claim for claim in self._behind_long(view, victim) if _may_run(view, claim, row)]
            for claim in loot:
                yield victim, claim
            if loot:
                return

    def _behind_long(self, view: View, row: int) -> list[Reservation]:
        """The run of short claims that stands behind a long task, in line or running."""
        line: Sequence[Reservation] = tuple(view.node_queues.get(row, ()))
        if not any(self.is_long(task) for task, _ in view.placed_pods(row)):
            line = tuple(dropwhile(lambda claim: not self.is_long(claim.head), line))
        behind = dropwhile(lambda claim: self.is_long(claim.head), line)
        return list(takewhile(lambda claim: not self.is_long(claim.head), behind))


def _may_run(view: View, claim: Reservation, row: int) -> bool:
    return view.classes.current(*claim.class_key).may_wait(row)
