"""What arrives, and what that makes of the nodes: the load of each class, and where its tasks are in the way.

From arrivals by class and learned rates, maths/disadvantage.py gives the load of each class, and for each
class the nodes that are better used for other work. The service time of a class counts as longer there, by up
to `MAX_FACTOR`: the price of the node. Without it, a large weight of waiting would let tasks take free nodes
on which they are slow while others come that would be fast there; less work would be done, and queues grow
without end far below the load that the nodes can bear. Of related machines no node has a price.

All this is computed again at the beginning of a cycle, every second or, where there are many classes and
nodes, every few: it is no part of a decision. Nodes that do all classes at the same pace, in steps, count as
one. Between two times the result stays as it is. Where there are many classes and nodes it takes several
steps, so that none of them is long; until the last one the result before is in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eclectus.framework import ClassKey, Floats, Rows, TaskClass, View
from eclectus.maths.deferring import in_steps
from eclectus.maths.disadvantage import disadvantage, improved_worth, plain_worth
from eclectus.maths.products import sum_of_products
from eclectus.policies.rosella.place.sampling import DEAD_RATE

REFRESH_SECONDS = 1.0
CELLS_A_SECOND = 200_000  # classes times nodes; with more, it is computed less often
# Bounds of one step, some milliseconds each: classes times nodes of which the pace is computed, and classes
# times groups of nodes times steps of the iteration.
CELLS_A_STEP, ITERATED_CELLS_A_STEP = 100_000, 800_000
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
        self._parts: Iterator[None] | None = None  # of a computation that goes on
        self._view: View | None = None  # in which the last part of it was

    def of(self, task_class: TaskClass) -> ClassDemand:
        """The load and prices of a class; of one that hardly arrives, the load of all work and no prices."""
        return self._classes.get((task_class.spec, task_class.workload), self._rest)

    def factors(self) -> dict[ClassKey, Floats]:
        """The prices of each class that has any."""
        return {key: each.factor for key, each in self._classes.items() if each.factor is not None}

    def refresh(self, view: View) -> int:
        """Compute everything again if that is due, one part in a step; how often it was computed."""
        if view.arrivals is None or not len(view.cluster):
            return self._times
        if view.cluster.capacity != self._capacity or (self._parts is None and view.now >= self._due_at):
            self._capacity = view.cluster.capacity
            self._parts = self._compute(view, view.arrivals.rates(view.now, MAX_CLASSES))
        elif self._parts is None or view is self._view:
            return self._times
        self._view = view
        for _ in self._parts:
            return self._times
        self._parts = None
        self._times += 1
        return self._times

    def _compute(self, view: View, rates: dict[ClassKey, float]) -> Iterator[None]:
        """Everything, by tasks that arrive a second of each class; yields where the next step goes on."""
        paces, arrivals, cells = list[Floats](), dict[ClassKey, float](), 0
        self._due_at = view.now + REFRESH_SECONDS
        for key, rate in rates.items():
            if cells >= CELLS_A_STEP:
                yield
                cells = 0
            cells += self._capacity
            pace = _pace(view, view.classes.current(*key))
            if rate > 0.0 and pace.any():
                paces.append(pace)
                arrivals[key] = rate
        self._due_at = max(self._due_at, view.now + len(paces) * self._capacity / CELLS_A_SECOND)
        if paces:
            yield from self._price(list(arrivals), np.array(paces), np.array(list(arrivals.values())))

    def _price(self, keys: Sequence[ClassKey], paces: Floats, arrivals: Floats) -> Iterator[None]:
        """`paces` [classes, rows], `arrivals` [classes]."""
        pace, nodes, group_of = _grouped(paces)
        known = [self._classes.get(key, NOTHING).worth for key in keys]
        worth = np.where(np.array(known) > 0.0, known, plain_worth(pace, nodes))
        steps = STEPS if any(known) else FIRST_STEPS
        at_once = max(ITERATED_CELLS_A_STEP // pace.size, 1)
        for _ in range(at_once, steps, at_once):
            worth, _ = improved_worth(worth, pace, nodes, arrivals, at_once)
            yield
        last = steps - (steps - 1) // at_once * at_once
        worth, load = improved_worth(worth, pace, nodes, arrivals, last)
        self._set(keys, worth, load, in_steps(_factor(worth, pace)), group_of)
        self._rest = ClassDemand(float(sum_of_products(load, arrivals) / arrivals.sum()), 0.0, None, 0)

    def _set(
        self, keys: Sequence[ClassKey], worth: Floats, load: Floats, factor: Floats, group_of: Rows
    ) -> None:
        """The result for each class; `factor` [classes, groups]."""
        before, self._classes = self._classes, {}
        for at, key in enumerate(keys):
            own = None if (factor[at] == 1.0).all() else factor[at][group_of]
            last = before.get(key, NOTHING)
            version = last.version + (not _same(own, last.factor))
            self._classes[key] = ClassDemand(float(load[at]), float(worth[at]), own, version)


def _factor(worth: Floats, pace: Floats) -> Floats:
    """By what the service time of each class counts as longer on each group, 1..MAX_FACTOR."""
    factor = disadvantage(worth, pace)
    factor *= MAX_FACTOR - 1.0
    factor += 1.0
    return factor


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
