"""Hawk's randomized task stealing: an idle node takes over short tasks that are queued behind long ones.

Delgado, Dinu, Kermarrec, Zwaenepoel, "Hawk: Hybrid Datacenter Scheduling", USENIX ATC 2015, section 3.6. A
node that runs nothing picks up to ten random nodes of the long partition, one after the other, and takes from
the first that has any the group of short reservations that directly follows a long task there, queued or
running. Node queues themselves are first in, first out.

Departures:
- on nodes of several slots a node steals when it runs nothing but services, because a single free slot is
  filled by the node's own queue;
- a node steals when it becomes idle and its queue is empty, from queues that the engine keeps: messages take
  no time;
- a node takes only reservations whose tasks it may run, since here tasks have constraints.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile

from eclectus.framework import Line, LineTraits, Reservation, View, setting
from eclectus.policies.shared import Partition


@dataclass(eq=False)
class Stealing(Partition, Line):
    """First in, first out; an idle node takes over short tasks queued behind long ones (Hawk)."""

    traits = LineTraits(first_come=True, steals=True)

    attempts: int = setting(
        10,
        "nodes that an idle node asks; 0: nothing is stolen, which the paper compares with",
        why="as in the paper",
        least=0,
        most=1000,
    )

    def steal(self, view: View, row: int) -> Iterator[tuple[int, Reservation]]:
        """Everything that can be taken from the first node asked that has something to take."""
        if any(not task.spec.long_running for task, _ in view.placed.on_row(row)):
            return
        victims = self.rows_for_long(view, view.cluster.present.nonzero()[0])
        for _ in range(self.attempts):
            victim = int(victims[view.rng.randrange(len(victims))])
            behind = self._behind_long(view, victim)
            stolen = [each for each in behind if view.classes.current(*each.class_key).may_wait(row)]
            for reservation in stolen:
                yield victim, reservation
            if stolen:
                return

    def _behind_long(self, view: View, row: int) -> list[Reservation]:
        """The first uninterrupted group of short reservations behind a long task, queued or running."""
        queue: Sequence[Reservation] = tuple(view.node_queues.get(row, ()))
        if not any(self.is_long(task) for task, _ in view.placed.on_row(row)):
            queue = tuple(dropwhile(lambda each: not self.is_long(each.head), queue))
        behind = dropwhile(lambda each: self.is_long(each.head), queue)
        return list(takewhile(lambda each: not self.is_long(each.head), behind))
