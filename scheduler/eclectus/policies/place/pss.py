"""Proportional sampling (PSS): one node, drawn with probability in proportion to its speed.

A baseline of Wu, Liu, "Rosella", 2020 (section on proportional sampling): node i is drawn with probability
mu_i over the sum of all mu, and the task joins its queue. With exact rates it is stable for every load below
1; with a relative error of e in the rates it is stable up to a load of (1 - e) / (1 + e), where two choices
still are stable.

Departure: mu_i is the rate of one slot of the node, for the task's workload. So nodes of unequal slots get as
much work for each node, and not for each slot, where the paper's workers run one task at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from eclectus.framework import Action, Enqueue, Place, PlaceTraits, Task, Unschedulable, View
from eclectus.maths.sampling import draw_proportional, draw_rows


@dataclass(eq=False)
class Proportional(Place):
    """One node, drawn in proportion to its learned rate (PSS)."""

    traits = PlaceTraits(joins_node_queues=True)

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        """Enqueue each task at a node drawn in proportion to the learned rates."""
        for task in pending:
            task_class = view.task_class(task)
            speeds = view.speeds(task_class)
            rows = task_class.waitable_rows
            row = draw_proportional(view.rng, rows, speeds.rate, speeds.most)
            if row is None and len(rows):  # all of them count as dead
                (row,) = draw_rows(view.rng, rows, 1, distinct=False)
            yield Unschedulable(task) if row is None else Enqueue(task, row)
