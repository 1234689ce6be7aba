"""Random placement that ignores speeds: one uniform choice, or the better of two.

Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 1996 (IEEE TPDS 2001): with the shorter
of two uniformly drawn queues the longest queue grows as log log n, with one draw as log n / log log n.

Departures:
- queue lengths are divided by the number of slots, because nodes differ in size;
- with `queue: central` nodes are drawn only among those with room, because a pod cannot be bound to a node
  without room;
- a task that requests a share of a device gets a random device with room there, unless `devices` says
  otherwise.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from eclectus.framework import Action, Bind, Enqueue, Place, PlaceTraits, Unschedulable, View
from eclectus.maths.sampling import draw_marked
from eclectus.model.objects import Task
from eclectus.model.settings import setting
from eclectus.policies.shared import QUEUE, TRAITS_BY_QUEUE, Queue


@dataclass(eq=False)
class Uniform(Place):
    """One node, drawn uniformly."""

    queue: Queue = setting("central", QUEUE)
    devices: Literal["random", "fullest"] = setting(
        "random",
        "which of a node's devices with room a task gets, with a central queue",
        why="random, like the choice of the node; fullest keeps whole devices free",
    )
    choices = 1

    @property
    def traits(self) -> PlaceTraits:
        """It joins node queues with `queue: lines`."""
        return TRAITS_BY_QUEUE[self.queue]

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        """Draw `choices` nodes for each task; the one with the lowest load gets it."""
        for task in pending:
            yield self._answer(view, task)

    def _answer(self, view: View, task: Task) -> Action:
        task_class = view.task_class(task)
        marks = task_class.fits_now if self.queue == "central" else task_class.feasible
        drawn = [draw_marked(view.rng, task_class.waitable_rows, marks) for _ in range(self.choices)]
        rows = [row for row in drawn if row is not None]
        if not rows:
            return Unschedulable(task)
        # Running and queued tasks per slot.
        overflow, slots = task_class.overflow, task_class.empty_capacity
        row = min(rows, key=lambda row: float(1.0 + overflow[row] / slots[row]))
        if self.queue != "central":
            return Enqueue(task, row)
        devices = view.cluster.devices
        if devices is None or self.devices == "fullest":
            return Bind(task, row)
        return Bind(task, row, devices.choose(row, task.spec.requests, view.rng))


@dataclass(eq=False)
class PowerOfTwo(Uniform):
    """The less loaded of two nodes drawn uniformly; a tie goes to the first drawn."""

    choices = 2
