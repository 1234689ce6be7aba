"""What nodes cost a task: the keys of sampling, what arrives, and the costs of re-planning.

Each formula is written once, for one node and for many: few nodes change between two questions of a cycle,
and plain numbers are several times as fast for these. For one node `at` is a row, `nodes` are a class's
scalars, and `m` is the module maths/numbers.py; for many `at` is an array of rows, `nodes` is the class
itself, and `m` is numpy. Both give the same to the last bit, so that nodes with equal costs stay equal.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from math import inf, log
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.cluster.scalars import scalars
from eclectus.framework import AnyRows, ClassKey, Floats, Rows, Speeds, TaskClass, View
from eclectus.maths import numbers
from eclectus.maths.numbers import Arithmetic, Value, sum_of_products
from eclectus.maths.replanning import (
    LOG_STEP,
    disadvantage,
    improved_worth,
    in_steps,
    in_steps_at,
    plain_worth,
    step_of,
    weight_of_waiting,
)

DEAD_RATE = 1e-9  # tasks a second, with which a dead node counts: behind all others, but not excluded

At = TypeVar("At")
At_contra = TypeVar("At_contra", contravariant=True)
Item_co = TypeVar("Item_co", covariant=True)
Value_co = TypeVar("Value_co", float, Floats, covariant=True)


class Column(Protocol[At_contra, Item_co]):
    """One number for each node. `At`: a row (int), which gives one number, or an array of rows."""

    def __getitem__(self, at: At_contra, /) -> Item_co: ...


class Nodes(Protocol[At_contra, Value_co]):
    """What costs are computed from: a TaskClass, or its scalars."""

    @property
    def feasible(self) -> Column[At_contra, bool | NDArray[np.bool_]]:
        """Whether the node may run a task of the class."""

    @property
    def fits_now(self) -> Column[At_contra, bool | NDArray[np.bool_]]:
        """Whether a task of the class fits now."""

    @property
    def overflow(self) -> Column[At_contra, Value_co]:
        """Tasks of the class that must end before one more fits; 0 or less if one fits."""

    @property
    def service_slots(self) -> Column[At_contra, Value_co]:
        """Slots of the class that long-running pods leave."""

    @property
    def background_free(self) -> Column[At_contra, Value_co]:
        """Share of the node that background load leaves, 0..1."""

    @property
    def preference_score(self) -> Column[At_contra, Value_co]:
        """How well the node meets the pod's preferences, 0..1."""


# Three keys by which nodes are compared. The least key wins; a tie goes to the faster node.
#
# For a node of k slots, each of which serves `rate` tasks a second, with q tasks running or queued there:
#
#     sq    q / k                              the paper's rule: shortest queue
#     wait  max(0, q - k + 1) / (k rate idle)  time until a slot is free; 0 on every node with a free slot
#     sed   wait + 1 / rate                    shortest expected delay: time until the task has ended
#
# `idle` is the share of the node that background load leaves, 1 if none is known. With k = 1 and no
# background load the keys are q, q / mu and (q + 1) / mu. q - k + 1 is the overflow of the task's class.


class Key(Protocol):
    """A key of nodes; `rate` in tasks a second in one slot, indexed by row as `nodes` is."""

    def __call__(
        self, m: Arithmetic[Value], nodes: Nodes[At, Value], rate: Column[At, Value], at: At, /
    ) -> Value:
        """The key of one node, or of each of many."""
        ...


def shortest_queue(
    m: Arithmetic[Value], nodes: Nodes[At, Value], rate: Column[At, Value], at: At, /
) -> Value:
    """Tasks per slot; inf where long-running pods leave no slot."""
    slots = nodes.service_slots[at]
    queue = m.maximum(nodes.overflow[at] + slots - 1.0, 0.0)
    return m.where(slots > 0, m.divide(queue, slots), inf)


def least_wait(m: Arithmetic[Value], nodes: Nodes[At, Value], rate: Column[At, Value], at: At, /) -> Value:
    """Seconds until one more task of the class fits; inf where no ending task can make room for it."""
    missing = m.where(nodes.fits_now[at], 0.0, m.maximum(nodes.overflow[at], 1.0))
    # With a free slot the wait is 0, even at speed 0; the division would give nan.
    pace = nodes.service_slots[at] * rate[at] * nodes.background_free[at]
    return m.where(missing > 0, m.divide(missing, pace), 0.0)


def shortest_delay(
    m: Arithmetic[Value], nodes: Nodes[At, Value], rate: Column[At, Value], at: At, /
) -> Value:
    """Seconds until the task would have ended."""
    return least_wait(m, nodes, rate, at) + m.divide(1.0, rate[at])


KEYS: dict[str, Key] = {"sq": shortest_queue, "wait": least_wait, "sed": shortest_delay}


# What arrives, and what that makes of the nodes: the load of each class, and where its tasks are in the way.
#
# From arrivals by class and learned rates, maths/replanning.py gives the load of each class, and for each
# class the nodes that are better used for other work. The service time of a class counts as longer there, by
# up to `MAX_FACTOR`: the price of the node. Without it, a large weight of waiting would let tasks take free
# nodes on which they are slow while others come that would be fast there; less work would be done, and queues
# grow without end far below the load that the nodes can bear. Of related machines no node has a price.
#
# All this is computed again at the beginning of a cycle, every second or, where there are many classes and
# nodes, every few: it is no part of a decision. Nodes that do all classes at the same pace, in steps, count
# as one. Between two times the result stays as it is. Where there are many classes and nodes it takes several
# steps, so that none of them is long; until the last one the result before is in force.

REFRESH_SECONDS = 1.0
CELLS_A_SECOND = 200_000  # classes times nodes; with more, it is computed less often
# Bounds of one step, some milliseconds each: classes times nodes of which the pace is computed, and classes
# times groups of nodes times steps of the iteration.
CELLS_A_STEP, ITERATED_CELLS_A_STEP = 100_000, 800_000
CELLS_OF_COMPARISON = 4  # that a comparison of a new class with pods on nodes counts as
MAX_CLASSES = 64  # the most frequent ones
STEPS, FIRST_STEPS = 8, 32  # of the iteration, after the first time and at the first time
MAX_FACTOR = 4.0


class ClassDemand(Struct, frozen=True):
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
            before = view.cluster.pods.compared
            task_class = view.classes.current(*key)
            cells += self._capacity + CELLS_OF_COMPARISON * (view.cluster.pods.compared - before)
            # Tasks of the class a second with all slots, rates in steps; 0 where it may not run.
            speed = in_steps(np.maximum(view.speeds(task_class).rate, DEAD_RATE))
            pace = task_class.service_slots * speed * task_class.background_free
            pace = np.where(task_class.feasible, pace, 0.0)
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
        factor = disadvantage(worth, pace)  # by what the service time counts as longer, from 0 to 1 here
        factor *= MAX_FACTOR - 1.0
        factor += 1.0
        self._set(keys, worth, load, in_steps(factor), group_of)
        self._rest = ClassDemand(float(sum_of_products(load, arrivals) / arrivals.sum()), 0.0, None, 0)

    def _set(
        self, keys: Sequence[ClassKey], worth: Floats, load: Floats, factor: Floats, group_of: Rows
    ) -> None:
        """The result for each class; `factor` [classes, groups]."""
        before, self._classes = self._classes, {}
        for at, key in enumerate(keys):
            own = None if (factor[at] == 1.0).all() else factor[at][group_of]
            last = before.get(key, NOTHING)
            is_same = own is last.factor or (
                own is not None and last.factor is not None and np.array_equal(own, last.factor)
            )
            version = last.version + (not is_same)
            self._classes[key] = ClassDemand(float(load[at]), float(worth[at]), own, version)


def _grouped(paces: Floats) -> tuple[Floats, Floats, Rows]:
    """The distinct columns of [classes, rows], how often each occurs, and which of them each row has."""
    # A hash of each column; equal hashes of different ones are as likely as a defect of the memory.
    mixed: NDArray[np.uint64] = np.zeros(paces.shape[1], dtype=np.uint64)
    for bits in paces.view(np.uint64):
        mixed = (mixed ^ bits) * np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(29)
    _, first, group_of, count = np.unique(mixed, return_index=True, return_inverse=True, return_counts=True)
    return paces[:, first], count.astype(float), group_of


# What it costs a task, in weighed seconds, to run on a node with room or to wait for a busy one.
#
#     with room   service
#     waiting     theta * overflow / (k release) + service
#
# By how much longer a task counts as running on nodes that are needed by tasks that can run on few.
#
# The prices are those of `place: phoenix` (accounts/node_prices.py; Phoenix, ICDCS 2017). A task compares the
# price of each node with the least among its own nodes: what its own constraints demand adds the same to all
# of these, so only what others want is left, and nothing changes for a task that has nowhere else to go.
#
#     factor = 1 + min(price - least price, MAX_SURCHARGE)
#
# Tasks with preferences have no such factor: what they prefer is part of the price of the nodes that they
# prefer, and would push them away from these.

MAX_SURCHARGE = 3.0  # so no tenant's pods can make a node count as more than four times as slow for others


def scarcity_factor(view: View, task_class: TaskClass) -> Floats | None:
    """By row, 1 and more, shape [capacity]; None if 1 everywhere. Kept while prices and nodes stay."""
    prices = view.node_prices()
    version = (prices.epoch, view.cluster.shape.head, view.cluster.service_changes)
    return task_class.kept(_scarcity_factor, version, task_class, prices.price)


def _scarcity_factor(task_class: TaskClass, price: Floats) -> Floats | None:
    rows = task_class.waitable_rows
    if task_class.spec.preferences or not len(rows):
        return None
    least = float(price[rows].min())
    if float(price[rows].max()) == least:
        return None
    return 1.0 + np.clip(price - least, 0.0, MAX_SURCHARGE)


# theta, the weight of a second of waiting: set by the user, or computed from load and faster nodes.
#
# The rule is that of maths/replanning.py. The load is that of the class, from arrivals (Demand): the share
# of the nodes' capacity in use would lag where work comes faster than before, and is too low where tasks wait
# beside room. What nodes faster than another do is computed once for all nodes of a class, and again when
# speeds or prices have changed.


class WaitingWeight(Struct, frozen=True, eq=False):
    """theta by class and the node with room that a task would run on instead of waiting."""

    fixed: float | None
    demand: Demand

    def of(self, view: View, task_class: TaskClass, row: int, speeds: Speeds) -> float:
        """theta as set, or of this node with room; `speeds`: those of the class."""
        if self.fixed is not None:
            return self.fixed
        demand = self.demand.of(task_class)
        if demand.load <= 0.0:
            return weight_of_waiting(0.0)
        cluster = view.cluster
        key = (speeds.epoch, cluster.shape.head, cluster.service_changes, demand.version)
        found: tuple[object, Floats, Faster] | None = task_class.derived.get(self)
        if found is None or found[0] != key:
            faster = _faster(view, task_class, demand.factor)
            found = task_class.derived[self] = (key, faster.total_over(faster.behind), faster)
        return weight_of_waiting(demand.load * found[1].item(row))

    def of_slots(self, task_class: TaskClass) -> float:
        """What a second costs, with what it costs others, by which a task holds a slot for longer.

        The tasks in an M/M/1 queue, load / (1 - load) in the mean, grow with the load as 1 / (1 - load)^2.
        """
        return weight_of_waiting(self.demand.of(task_class).load) ** 2 if self.fixed is None else self.fixed

    def of_slower(
        self, view: View, task_class: TaskClass, row: int, speeds: Speeds, *, times: float
    ) -> float:
        """The same of a task that takes so many times as long there, as its data are elsewhere."""
        theta = self.of(view, task_class, row, speeds)  # brings what is kept of the class up to date
        load = self.demand.of(task_class).load
        if self.fixed is not None or load <= 0.0:
            return theta
        faster: Faster = task_class.derived[self][2]
        behind = faster.behind[row] + round(log(times) / LOG_STEP)
        return weight_of_waiting(load * float(faster.total_over(behind)))


class Faster(Struct, frozen=True, eq=False):
    """What nodes of a class do that are faster than others. `behind`: by row, steps behind the fastest.

    `up_to`: the pace of all nodes that are less than so many steps behind; the last is that of all.
    """

    behind: NDArray[np.intp]
    up_to: Floats

    def total_over(self, behind: NDArray[np.intp]) -> Floats:
        """The pace of all nodes over that of those that are less behind; inf of the fastest."""
        faster = self.up_to[np.minimum(behind, len(self.up_to) - 1)]
        ratio: Floats = np.divide(
            self.up_to[-1], faster, out=np.full(np.shape(faster), np.inf), where=faster > 0.0
        )
        return ratio


def _faster(view: View, task_class: TaskClass, factor: Floats | None) -> Faster:
    """Nodes that have a price for the class count as slower, and with no pace."""
    rows = task_class.waitable_rows
    rate = np.clip(view.speeds(task_class).rate, DEAD_RATE, 1.0 / DEAD_RATE)
    pace = task_class.service_slots[rows] * rate[rows] * task_class.background_free[rows]
    if factor is not None:
        pace[factor[rows] > 1.0] = 0.0
        rate = rate / factor
    step = step_of(rate)
    behind = (step.max(initial=0.0) - step).astype(np.intp)  # steps behind the fastest: some hundreds at most
    return Faster(behind, np.concatenate([[0.0], np.cumsum(np.bincount(behind[rows], pace, minlength=1))]))


SPREAD = 1e-3  # the most that free room changes a cost: it decides among equal costs only


class Formulas(Struct, Generic[At, Value], frozen=True, eq=False):
    """The costs of a class on one node or on many, whether they have room or not.

    `in_steps`: rounds rates. `nodes`: the class or its scalars. `rate` of the class and `release` of what
    runs there, tasks a second in each slot. `factors`: by what the service time counts as longer.
    `preference_weight`: of unmet preferences.
    """

    m: Arithmetic[Value]
    in_steps: Callable[[Value], Value]
    nodes: Nodes[At, Value]
    rate: Column[At, Value]
    release: Column[At, Value]
    factors: Sequence[Column[At, Value]]
    preference_weight: float

    def service(self, at: At) -> Value:
        """Seconds that a task runs there, rates in steps; preferences, prices and room weighed in."""
        return self.unweighed_service(at) * self.penalty(at)

    def unweighed_service(self, at: At) -> Value:
        """The same without preferences."""
        m = self.m
        seconds = 1.0 / self.in_steps(m.maximum(self.rate[at], DEAD_RATE))
        for factor in self.factors:
            seconds = seconds * factor[at]
        return seconds * (1.0 + SPREAD / (2.0 + m.maximum(-self.nodes.overflow[at], 0.0)))

    def penalty(self, at: At) -> Value:
        """By what a node counts as slower for unmet preferences, 1 or more."""
        return self.penalty_of(self.nodes.preference_score[at])

    def penalty_of(self, score: Value) -> Value:
        """The same by how well preferences are met."""
        return 1.0 + self.preference_weight * (1.0 - score)

    def waiting(self, at: At, theta: float) -> Value:
        """Of waiting until a task fits and running there; inf where it may not run."""
        wait = self.m.maximum(self.nodes.overflow[at], 1.0) / self.release_pace(at)
        return self.m.where(self.nodes.feasible[at], theta * wait + self.service(at), inf)

    def release_pace(self, at: At) -> Value:
        """Slots of the class that become free a second, by the rates of the tasks that run there.

        Where none is known to run, by the rate of the class. 0 where services leave no slot.
        """
        m, release = self.m, self.release[at]
        rate = m.where(release > 0.0, release, m.maximum(self.rate[at], DEAD_RATE))
        return m.maximum(self.nodes.service_slots[at] * rate * self.nodes.background_free[at], DEAD_RATE)


class ClassCosts:
    """The costs of a class as its nodes, rates and prices are now, for rankings.

    `version` changes when they have to be computed again for all nodes, apart from new speeds.
    """

    def __init__(
        self,
        task_class: TaskClass,
        speeds: Speeds,
        release: Floats,
        factors: Sequence[Floats],
        *,
        preference_weight: float,
        version: tuple[int, ...],
    ) -> None:
        self.speeds = speeds
        self.version = version
        self.of_many: Formulas[AnyRows, Floats] = Formulas(
            np, in_steps, task_class, speeds.rate, release, factors, preference_weight
        )
        self._of_one: Formulas[int, float] = Formulas(
            numbers,
            in_steps_at,
            task_class.scalars,
            scalars(speeds.rate),
            scalars(release),
            [scalars(factor) for factor in factors],
            preference_weight,
        )

    def is_made_of(
        self, task_class: TaskClass, speeds: Speeds, release: Floats, version: tuple[int, ...]
    ) -> bool:
        """Whether these are the costs of such a class: what changes in its arrays they follow."""
        one, many = self._of_one, self.of_many
        is_of_now = one.nodes is task_class.scalars and many.release is release
        return is_of_now and self.speeds is speeds and self.version == version

    def with_factor(self, factor: Floats, version: tuple[int, ...]) -> Self:
        """The same where the service time counts as longer by one more factor, which has this version."""
        costs, one, many = copy(self), self._of_one, self.of_many
        costs.version = (*self.version, *version)
        costs.of_many = replace(many, factors=[*many.factors, factor])
        costs._of_one = replace(one, factors=[*one.factors, scalars(factor)])  # noqa: SLF001 — of its own class
        return costs

    def with_room(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Weighed seconds that a task runs on nodes with room; inf on others."""
        return self.weighed(task_class, self.unweighed_with_room(task_class, rows), rows)

    def weighed(self, task_class: TaskClass, cost: Floats, rows: AnyRows) -> Floats:
        """The costs of these rows with preferences weighed in."""
        penalty = task_class.by_preference(self.of_many.penalty_of, rows)
        return np.multiply(cost, penalty, out=penalty)  # `penalty_of` makes new arrays

    def unweighed_with_room(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Seconds that a task runs on nodes with room, without preferences; inf on others."""
        cost = self.of_many.unweighed_service(rows)
        if task_class.spec.long_running:  # (q + 1) / k: the load of the node with this pod
            cost *= 1.0 + task_class.overflow[rows] / np.maximum(task_class.empty_capacity[rows], 1.0)
        return np.where(task_class.fit_beside_held(rows), cost, np.inf)

    def each_with_room(self, task_class: TaskClass, rows: Sequence[int]) -> Iterator[float]:
        """The same of a few nodes, for a class that is not long-running."""
        fits_now, fits = task_class.scalars.fits_now, task_class.fits_beside_held
        service = self._of_one.service
        return (service(row) if fits_now[row] or fits(row) else inf for row in rows)

    def each_unweighed_with_room(self, task_class: TaskClass, rows: Sequence[int]) -> Iterator[float]:
        """Seconds that a task runs on each of a few nodes with room, without preferences; inf on others."""
        fits_now, fits = task_class.scalars.fits_now, task_class.fits_beside_held
        service, overflow = self._of_one.unweighed_service, task_class.scalars.overflow
        for row in rows:
            if not (fits_now[row] or fits(row)):
                yield inf
            elif task_class.spec.long_running:
                yield service(row) * (1.0 + overflow[row] / max(task_class.empty_capacity.item(row), 1.0))
            else:
                yield service(row)

    def waiting(self, theta: float, task_class: TaskClass, rows: Rows) -> Floats:
        """theta * wait + weighed service on nodes without room; inf on others."""
        cost, is_busy = np.full(len(rows), np.inf), ~task_class.fit_beside_held(rows)
        busy = rows[is_busy]
        if len(busy):
            cost[is_busy] = self.of_many.waiting(busy, theta)
        return cost

    def each_waiting(self, theta: float, task_class: TaskClass, rows: Sequence[int]) -> Iterator[float]:
        """The same of a few nodes."""
        fits_now, fits = task_class.scalars.fits_now, task_class.fits_beside_held
        waiting = self._of_one.waiting
        return (inf if fits_now[row] or fits(row) else waiting(row, theta) for row in rows)
