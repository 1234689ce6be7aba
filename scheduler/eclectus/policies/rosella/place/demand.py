"""What arrives, and what that makes of the nodes: the load of each class, and where its tasks are in the way.

From arrivals by class and learned rates, maths/disadvantage.py gives the load of each class, and for each
class the nodes that are better used for other work. The service time of a class counts as longer there, by up
to `MAX_FACTOR`: the price of the node. Without it, a large weight of waiting would let tasks take free nodes
on which they are slow while others come that would be fast there; less work would be done, and queues grow
without end far below the load that the nodes can bear. Of related machines no node has a price.

All this is computed again at the beginning of a cycle, every second or, where there are many classes and
nodes, every few: it is no part of a decision. Nodes that do all classes at the same pace, in steps, count as
one. Between two times the result stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import View
from eclectus.maths.deferring import in_steps
from eclectus.maths.disadvantage import disadvantage, improved_worth, plain_worth
from eclectus.maths.numbers import Floats
from eclectus.maths.products import sum_of_products
from eclectus.model.reservation import ClassKey
from eclectus.policies.rosella.place.compare import DEAD_RATE

REFRESH_SECONDS = 1.0
CELLS_A_SECOND = 200_000  # classes times nodes; with more, it is computed less often
MAX_CLASSES = 64  # the most frequent ones
STEPS, FIRST_STEPS = 8, 32  # of the iteration, after the first time and at the first time
MAX_FACTOR = 4.0


@dataclass(frozen=True)
class ClassDemand:
    """What was computed of one class. `version` changes with `factor`, by row; None if it is 1 everywhere."""

    load: float
    worth: float
    factor: Floats | None
    version: int


NOTHING = ClassDemand(0.0, 0.0, None, 0)


class Demand:
    """Loads and prices by class. `refresh` must be called before they are read."""

    def __init__(self) -> None:
        self._classes: dict[ClassKey, ClassDemand] = {}
        self._rest = NOTHING  # of all others
        self._due_at = float("-inf")
        self._capacity = self._times = 0

    def of(self, task_class: TaskClass) -> ClassDemand:
        """The load and prices of a class; of one that hardly arrives, the load of all work and no prices."""
        return self._classes.get((task_class.spec, task_class.workload), self._rest)

    def refresh(self, view: View) -> int:
        """Compute everything again if that is due; how often it was computed."""
        is_due = view.now >= self._due_at or view.cluster.capacity != self._capacity
        if view.arrivals is None or not is_due or not len(view.cluster):
            return self._times
        self._times += 1
        self._capacity = view.cluster.capacity
        paces, arrivals = list[Floats](), dict[ClassKey, float]()
        for key, rate in view.arrivals.rates(view.now, MAX_CLASSES).items():
            pace = _pace(view, view.classes.current(*key))
            if rate > 0.0 and pace.any():
                paces.append(pace)
                arrivals[key] = rate
        self._due_at = view.now + max(REFRESH_SECONDS, len(paces) * self._capacity / CELLS_A_SECOND)
        if paces:
            self._compute(list(arrivals), np.array(paces), np.array(list(arrivals.values())))
        return self._times

    def _compute(self, keys: Sequence[ClassKey], paces: Floats, arrivals: Floats) -> None:
        """`paces` [classes, rows], `arrivals` [classes]."""
        pace, nodes, group_of = _grouped(paces)
        plain = plain_worth(pace, nodes)
        known = [self._classes.get(key, NOTHING).worth for key in keys]
        worth = np.where(np.array(known) > 0.0, known, plain)
        worth, load = improved_worth(worth, pace, nodes, arrivals, STEPS if any(known) else FIRST_STEPS)
        factor = in_steps(1.0 + (MAX_FACTOR - 1.0) * disadvantage(worth, pace))
        before, self._classes = self._classes, {}
        for at, key in enumerate(keys):
            own = None if (factor[at] == 1.0).all() else factor[at][group_of]
            last = before.get(key, NOTHING)
            version = last.version + (not _same(own, last.factor))
            self._classes[key] = ClassDemand(float(load[at]), float(worth[at]), own, version)
        self._rest = ClassDemand(float(sum_of_products(load, arrivals) / arrivals.sum()), 0.0, None, 0)


def _pace(view: View, task_class: TaskClass) -> Floats:
    """Tasks of the class a second with all slots, rates in steps; 0 where it may not run."""
    rate = np.maximum(view.speeds(task_class).rate, DEAD_RATE)
    pace = task_class.service_slots * in_steps(rate) * task_class.background_free
    return np.where(task_class.feasible, pace, 0.0)


def _grouped(paces: Floats) -> tuple[Floats, Floats, Rows]:
    """The distinct columns of [classes, rows], how often each occurs, and which of them each row has."""
    # A hash of each column; equal hashes of different ones are as likely as a defect of the memory.
    mixed: NDArray[np.uint64] = np.zeros(paces.shape[1], dtype=np.uint64)
    for bits in paces.view(np.uint64):
        mixed = (mixed ^ bits) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    _, first, group_of, count = np.unique(mixed, return_index=True, return_inverse=True, return_counts=True)
    return paces[:, first], count.astype(float), group_of


def _same(one: Floats | None, other: Floats | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
