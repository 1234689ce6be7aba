"""What it costs a task, in weighed seconds, to run on a node with room or to wait for a busy one.

    with room   service
    waiting     theta * overflow / (k release) + service

Each formula is written once, for one node and for many, as in sampling.py: few nodes change between two
questions of a cycle, and plain numbers are several times as fast for these. Both give the same to the last
bit, so that nodes with equal costs stay equal.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Generic

import numpy as np
from msgspec import Struct

from eclectus.cluster.scalars import scalars
from eclectus.framework import AnyRows, Floats, Rows, Speeds, TaskClass, View
from eclectus.maths import numbers
from eclectus.maths.deferring import in_steps, in_steps_at, step_of, weight_of_waiting
from eclectus.maths.numbers import Arithmetic, Value
from eclectus.policies.rosella.place.demand import ClassDemand, Demand
from eclectus.policies.rosella.place.sampling import DEAD_RATE, At, Column, Nodes

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


class ScarcityFactors:
    """Factors by class, computed once for each epoch of the prices and shape of the nodes."""

    def of(self, view: View, task_class: TaskClass) -> Floats | None:
        """By row, 1 and more; None if it is 1 everywhere. Shape [capacity]."""
        prices = view.node_prices()
        key = (prices.epoch, view.cluster.shape.head, view.cluster.service_changes)
        known: tuple[object, Floats | None] | None = task_class.derived.get(self)
        if known is None or known[0] != key:
            known = task_class.derived[self] = (key, _factor(task_class, prices.price))
        return known[1]


def _factor(task_class: TaskClass, price: Floats) -> Floats | None:
    rows = task_class.waitable_rows
    if task_class.spec.preferences or not len(rows):
        return None
    least = float(price[rows].min())
    if float(price[rows].max()) == least:
        return None
    return 1.0 + np.clip(price - least, 0.0, MAX_SURCHARGE)


# theta, the weight of a second of waiting: set by the user, or computed from load and faster nodes.
#
# The rule is that of maths/deferring.py. The load is that of the class, from arrivals (demand.py): the share
# of the nodes' capacity in use would lag where work comes faster than before, and is too low where tasks wait
# beside room. What nodes faster than another do is computed once for all nodes of a class, and again when
# speeds or prices have changed.


@dataclass
class FasterNodes:
    """Of each row: the pace of all nodes of the class over that of the faster ones; inf of the fastest."""

    key: Hashable  # what it depends on
    ratio: Floats


class WaitingWeight:
    """theta by class and the node with room that a task would run on instead of waiting."""

    def __init__(self, fixed: float | None, demand: Demand) -> None:
        self._fixed, self._demand = fixed, demand

    def of(self, view: View, task_class: TaskClass, row: int) -> float:
        """theta as set, or of this node with room."""
        if self._fixed is not None:
            return self._fixed
        demand = self._demand.of(task_class)
        if demand.load <= 0.0:
            return weight_of_waiting(0.0)
        return weight_of_waiting(demand.load * self._faster(view, task_class, demand).ratio.item(row))

    def _faster(self, view: View, task_class: TaskClass, demand: ClassDemand) -> FasterNodes:
        cluster = view.cluster
        key = (view.speeds(task_class).epoch, cluster.shape.head, cluster.service_changes, demand.version)
        found: FasterNodes | None = task_class.derived.get(self)
        if found is None or found.key != key:
            ratio = _total_over_faster(view, task_class, demand.factor)
            found = task_class.derived[self] = FasterNodes(key, ratio)
        return found


def _total_over_faster(view: View, task_class: TaskClass, factor: Floats | None) -> Floats:
    """Shape [capacity]. Nodes that have a price for the class count as slower, and with no pace."""
    rows = task_class.waitable_rows
    rate = np.clip(view.speeds(task_class).rate, DEAD_RATE, 1.0 / DEAD_RATE)
    pace = task_class.service_slots[rows] * rate[rows] * task_class.background_free[rows]
    if factor is not None:
        pace[factor[rows] > 1.0] = 0.0
        rate = rate / factor
    step = step_of(rate)
    behind = (step.max(initial=0.0) - step).astype(np.intp)  # steps behind the fastest: some hundreds at most
    up_to = np.concatenate([[0.0], np.cumsum(np.bincount(behind[rows], pace, minlength=1))])
    faster = up_to[np.minimum(behind, len(up_to) - 1)]
    ratio: Floats = np.divide(up_to[-1], faster, out=np.full(len(rate), np.inf), where=faster > 0.0)
    return ratio


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
        return 1.0 + self.preference_weight * (1.0 - self.nodes.preference_score[at])

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
        self.speeds, self.version = speeds, version
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

    def with_room(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Weighed seconds that a task runs on nodes with room; inf on others."""
        return self.weighed(task_class, self.unweighed_with_room(task_class, rows), rows)

    def weighed(self, task_class: TaskClass, cost: Floats, rows: AnyRows) -> Floats:
        """The costs of these rows with preferences weighed in."""
        return cost * self.of_many.penalty(rows)

    def unweighed_with_room(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Seconds that a task runs on nodes with room, without preferences; inf on others."""
        cost = self.of_many.unweighed_service(rows)
        if task_class.spec.long_running:  # (q + 1) / k: the load of the node with this pod
            cost *= 1.0 + task_class.overflow[rows] / np.maximum(task_class.empty_capacity[rows], 1.0)
        return np.where(task_class.fit_beside_held(rows), cost, np.inf)

    def each_with_room(self, task_class: TaskClass, rows: Sequence[int]) -> Iterator[float]:
        """The same of a few nodes, for a class that is not long-running."""
        fits, service = task_class.fits_beside_held, self._of_one.service
        return (service(row) if fits(row) else inf for row in rows)

    def waiting(self, theta: float, task_class: TaskClass, rows: Rows) -> Floats:
        """theta * wait + weighed service on nodes without room; inf on others."""
        cost, is_busy = np.full(len(rows), np.inf), ~task_class.fit_beside_held(rows)
        busy = rows[is_busy]
        if len(busy):
            cost[is_busy] = self.of_many.waiting(busy, theta)
        return cost

    def each_waiting(self, theta: float, task_class: TaskClass, rows: Sequence[int]) -> Iterator[float]:
        """The same of a few nodes."""
        fits, waiting = task_class.fits_beside_held, self._of_one.waiting
        return (inf if fits(row) else waiting(row, theta) for row in rows)
