"""Join-Idle-Queue (JIQ): an idle node if there is one, else a random node.

Lu, Xie, Kliot, Geller, Larus, Greenberg, "Join-Idle-Queue: A novel load balancing algorithm for dynamically
scalable web services", Performance 2011. Idle nodes are known to the dispatcher; a task goes to one of them.
Neither speeds nor queue lengths are used.

Departures:
- there is one dispatcher, which knows all idle nodes. The paper has many, each with a queue of its own of
  idle nodes, which an idle node joins at random (JIQ-Random);
- idle means that the node has room for the task, so a node of several slots counts as idle until it is full.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from eclectus.framework import Action, Bind, Enqueue, Place, PlaceTraits, Task, Unschedulable, View
from eclectus.maths.sampling import draw_marked


@dataclass(eq=False)
class JoinIdle(Place):
    """A random node with room; if there is none, the queue of a random node (JIQ)."""

    traits = PlaceTraits(joins_node_queues=True)

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        """Place the task on a random node with room, or enqueue it at any node that may run it."""
        for task in pending:
            task_class = view.task_class(task)
            rows = task_class.waitable_rows
            idle = draw_marked(view.rng, rows, task_class.fits_now) if task_class.fits_now_count else None
            if idle is not None:
                yield Bind(task, idle)
            elif len(rows):
                yield Enqueue(task, int(rows[view.rng.randrange(len(rows))]))
            else:
                yield Unschedulable(task)
