"""Policies of the published comparisons that break ties at random or in favour of the first choice.

Ties matter: if they go to the first node, a stale view with a hundred equally empty nodes sends all tasks
to one of them. These policies are not shipped; tests add them to the table of policies.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, Bind, Enqueue, Place, Unschedulable, View
from eclectus.maths.numbers import Floats
from eclectus.maths.sampling import draw_proportional
from eclectus.model.objects import Task


class OneByOne(Place):
    """Decides on each task separately."""

    def place(self, view: View, turns: Iterator[Task]) -> Iterator[Action]:
        for task in turns:
            yield self.answer(view, task, view.task_class(task))

    @abstractmethod
    def answer(self, view: View, task: Task, task_class: TaskClass) -> Action:
        """The action for this task."""


class LeastOfAll(OneByOne):
    """The queue of the node with the least key, ties at random."""

    def answer(self, view: View, task: Task, task_class: TaskClass) -> Action:
        rows = task_class.waitable_rows
        return Enqueue(task, least(view, rows, self.keys(task_class, view.speeds(task_class).rate, rows)))

    @abstractmethod
    def keys(self, task_class: TaskClass, rate: Floats, rows: Rows) -> Floats:
        """Keys, in the order of `rows`."""


@dataclass(eq=False)
class ShortestOfAll(LeastOfAll):
    """Join the shortest queue (JSQ)."""

    def keys(self, task_class: TaskClass, rate: Floats, rows: Rows) -> Floats:
        return task_class.overflow[rows]


@dataclass(eq=False)
class SoonestOfAll(LeastOfAll):
    """Shortest expected delay (SED), on single slots."""

    def keys(self, task_class: TaskClass, rate: Floats, rows: Rows) -> Floats:
        return (task_class.overflow[rows] + 1) / rate[rows]


@dataclass(eq=False)
class FirstDrawn(OneByOne):
    """Two choices in proportion to speed; the first choice wins a tie. On single slots."""

    compare: Literal["sq", "sed"] = "sq"

    def answer(self, view: View, task: Task, task_class: TaskClass) -> Action:
        speeds, over = view.speeds(task_class), task_class.scalars.overflow
        rows = task_class.waitable_rows
        one, other = (draw_proportional(view.rng, rows, speeds.rate, speeds.most) for _ in range(2))
        assert one is not None
        assert other is not None
        if self.compare == "sq":
            return Enqueue(task, other if over[other] < over[one] else one)
        sooner = (over[other] + 1) / speeds.rate[other] < (over[one] + 1) / speeds.rate[one]
        return Enqueue(task, other if sooner else one)


@dataclass(eq=False)
class TwoBlind(OneByOne):
    """Two uniform choices; the shorter queue, and of equal ones that of the faster node."""

    def answer(self, view: View, task: Task, task_class: TaskClass) -> Action:
        rows, over, rate = task_class.waitable_rows, task_class.overflow, view.speeds(task_class).rate
        drawn = [int(rows[view.rng.randrange(len(rows))]) for _ in range(2)]
        return Enqueue(task, min(drawn, key=lambda row: (over[row], -rate[row])))


@dataclass(eq=False)
class CentralQueue(OneByOne):
    """As kube-scheduler: the least loaded node with room, ties at random."""

    def answer(self, view: View, task: Task, task_class: TaskClass) -> Action:
        rows = task_class.fits_now_rows
        return Bind(task, least(view, rows, task_class.overflow[rows])) if len(rows) else Unschedulable(task)


def least(view: View, rows: Rows, keys: Floats) -> int:
    """A random row among those with the least key."""
    best = rows[np.flatnonzero(keys == keys.min())]
    return int(best[view.rng.randrange(len(best))])


RULES: dict[str, type[Place]] = {
    "jsq": ShortestOfAll,
    "sed": SoonestOfAll,
    "first-drawn": FirstDrawn,
    "two-blind": TwoBlind,
    "central-queue": CentralQueue,
}
