"""Join the idle queue (JIQ): an idle node if there is one, else any node.

Lu, Xie, Kliot, Geller, Larus, Greenberg, "Join-Idle-Queue", Performance 2011, with one dispatcher: nodes
that fall idle say so, and a task is handed to one of those who have said so. No speeds, no lengths.
Departures: idle means room for the task, so that nodes of many slots count until they are full; the
idle nodes are drawn from uniformly, as in the paper's JIQ-Random.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eclectus.framework import Action, Enqueue, Place, PlacePolicy, Unschedulable, View
from eclectus.maths.sampling import draw_marked
from eclectus.model.objects import Task


@dataclass(eq=False)
class JoinIdle(PlacePolicy):
    """Any node with room; where there is none, the line of any node."""

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        """One task, one answer."""
        for task in turns:
            task_class = view.task_class(task)
            rows = task_class.waitable_rows
            idle = draw_marked(view.rng, rows, task_class.fits_now) if task_class.fits_now_count else None
            if idle is not None:
                yield Place(task, idle)
            elif len(rows):
                yield Enqueue(task, int(rows[view.rng.randrange(len(rows))]))
            else:
                yield Unschedulable(task)
