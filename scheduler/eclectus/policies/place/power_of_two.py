"""Random placement, speed-blind: one uniform choice, or the better of two.

Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 1996/2001: the shorter queue of
two uniform samples bounds the longest queue at log log n where one sample gives log n / log log n.
Departure: queue lengths are counted per slot, and `queue: central` draws among nodes with room only,
as a Kubernetes scheduler does, because a node cannot be handed a pod it has no room for. A task that
asks for a share of a device is placed blindly there too, unless `devices` says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, Enqueue, Place, PlacePolicy, Unschedulable, View
from eclectus.maths.sampling import draw_marked
from eclectus.model.objects import DEVICE_MILLI, Task, amount_of
from eclectus.model.settings import Setting
from eclectus.policies.shared.queueing import Queue


@dataclass(eq=False)
class Uniform(PlacePolicy):
    """One uniform choice."""

    queue: Queue = "central"
    devices: Annotated[
        Literal["random", "fullest"],
        Setting(
            "which of a node's devices a task gets with a central queue, among those with room",
            why="random is blind in everything; fullest keeps whole devices whole",
        ),
    ] = "random"
    choices = 1

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        """One task, one answer."""
        for task in turns:
            yield self._answer(view, task)

    def _answer(self, view: View, task: Task) -> Action:
        task_class = view.task_class(task)
        marks = task_class.fits_now if self.queue == "central" else task_class.feasible
        drawn = [draw_marked(view.rng, task_class.waitable_rows, marks) for _ in range(self.choices)]
        rows = [row for row in drawn if row is not None]
        if not rows:
            return Unschedulable(task)
        row = min(rows, key=lambda row: self._load(task_class, row))
        return (
            Place(task, row, self._devices(view, task, row))
            if self.queue == "central"
            else Enqueue(task, row)
        )

    def _devices(self, view: View, task: Task, row: int) -> tuple[int, ...]:
        page = view.cluster.devices
        if page is None or self.devices == "fullest":
            return ()
        return page.choose(row, amount_of(task.spec.requests, DEVICE_MILLI), view.rng)

    def _load(self, task_class: TaskClass, row: int) -> float:
        return float(1.0 + task_class.overflow[row] / task_class.empty_capacity[row])


@dataclass(eq=False)
class PowerOfTwo(Uniform):
    """Two uniform choices, the emptier one wins; the first drawn wins a tie."""

    choices = 2
