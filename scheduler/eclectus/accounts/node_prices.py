"""Node prices by scarcity, kept up to date outside decisions (maths/scarcity.py has the formulas).

What each set of constraints demands of the nodes is what its pods hold and what those that wait will hold.
It is kept only if a policy needs `prices`. Every pod that has a node counts, whichever scheduler placed it,
and of the others those of our profiles that are not gated. A bind changes nothing: the pod's demand only
turns from waiting to held. Services do not count, because the room that they hold is not given back and so
no part of the supply either; nor do probes.

The demand of every set of constraints is sampled when a step begins, before its events: what is counted
then has been so since the step before. The samples are averaged over minutes, which by Little's law
measures the work that arrives rather than the queue of the moment. Where demand over supply has moved by a
tenth, the difference is added to the price of the set's nodes, a bounded number of sets in one step.

Prices are published in steps of `PRICE_STEP`, all at once and at most every `SAMPLE_SECONDS`, because a new
price makes every ranking of nodes start over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from math import exp, inf

import numpy as np
from msgspec import Struct, field

from eclectus.cluster.nodes import Cluster
from eclectus.cluster.resources import Parts
from eclectus.cluster.scalars import read_only
from eclectus.feasibility.constraint_set import ConstraintSet, nodes_of, weighted_sets
from eclectus.feasibility.static_rules import ShapeValues
from eclectus.maths.numbers import Floats
from eclectus.maths.scarcity import UNIT, Integers, Mask, in_units, move, price_to_supply, scarcest, scarcity
from eclectus.model.learned import ConstraintDemand
from eclectus.model.objects import Amounts, Spec, Task

SETS_MOST = 1024  # the demand of further ones is not counted until some of these have none any more
LONG = SETS_MOST  # the row of all long tasks together, whatever their sets
LONG_FACTOR = 2.0  # a task is long if its estimate exceeds so many times the mean of those of late
ESTIMATES_AVERAGED = 1000  # tasks over which that mean is taken


class _Counted(Struct, frozen=True, gc=False):
    """A task as it was counted: its spec may change later."""

    spec: Spec
    holding: Amounts
    rows: tuple[tuple[int, float], ...]  # of `amounts`, and the weight with which it counts there
    parts: Parts
    is_long: bool


class SetDemand:
    """Amounts demanded, by set and resource.

    `sets`: set -> its row of `amounts`. `amounts`: shape [SETS_MOST + 1, columns], columns as the cluster's;
    the last row is what long tasks demand.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._sets: dict[ConstraintSet, int] = {}
        self.sets: Mapping[ConstraintSet, int] = self._sets
        self.amounts: Floats = np.zeros((SETS_MOST + 1, len(cluster.columns)))
        self.tasks = [0] * (SETS_MOST + 1)  # that count in each row
        self._free_rows = list(range(SETS_MOST))[::-1]
        self._counted: dict[str, _Counted] = {}
        self._waiting: set[str] = set()
        self._holding: set[str] = set()
        self._estimates = 0
        self._mean_estimate = 0.0  # seconds

    def is_long(self, uid: str) -> bool:
        """Whether a task was long among its like when it was first seen; without an estimate it is not."""
        counted = self._counted.get(uid)
        return counted is not None and counted.is_long

    def wait(self, task: Task) -> None:
        """The task is pending, or was changed while it was."""
        self._waiting.add(task.uid)
        self._count(task)

    def leave(self, uid: str) -> None:
        """The task no longer waits; no error if it did not."""
        self._waiting.discard(uid)
        self._discount_unless_there(uid)

    def hold(self, task: Task) -> None:
        """The task has a node."""
        self._holding.add(task.uid)
        self._count(task)

    def release(self, uid: str) -> None:
        """The task has no node any more."""
        self._holding.discard(uid)
        self._discount_unless_there(uid)

    def regroup(self, task: Task) -> None:
        """Labels and owners of tasks do not count here."""

    def drop(self, constraints: ConstraintSet) -> None:
        """Forget a set of which no task counts."""
        self._free_rows.append(self._sets.pop(constraints))

    def widen(self) -> None:
        """Nodes may offer more resources by now: each needs a column."""
        more = len(self._cluster.columns) - self.amounts.shape[1]
        if more:
            self.amounts = np.pad(self.amounts, ((0, 0), (0, more)))

    def _count(self, task: Task) -> None:
        before, spec = self._counted.get(task.uid), task.spec
        if spec.long_running or spec.probe:
            return
        if before is not None:
            if before.spec == spec and before.holding == task.holding:
                return
            self._add(before, -1)
        is_long = self._judge(task) if before is None else before.is_long
        rows = [(self._row_of(each), weight) for each, weight in weighted_sets(spec)]
        counting = tuple((row, weight) for row, weight in rows if row >= 0)
        counting += ((LONG, 1.0),) if is_long else ()
        counted = _Counted(spec, task.holding, counting, self._cluster.held_parts(task), is_long)
        if len(self._cluster.columns) > self.amounts.shape[1]:
            self.widen()
        self._counted[task.uid] = counted
        self._add(counted, 1)

    def _discount_unless_there(self, uid: str) -> None:
        if uid not in self._waiting and uid not in self._holding:
            counted = self._counted.pop(uid, None)
            if counted is not None:
                self._add(counted, -1)

    def _add(self, counted: _Counted, times: int) -> None:
        amounts, tasks = self.amounts, self.tasks
        for row, weight in counted.rows:
            tasks[row] += times
            if not tasks[row]:
                amounts[row] = 0.0  # exactly: what was added in fractions leaves rounding errors
                continue
            for column, amount in counted.parts:
                amounts[row, column] += times * weight * amount

    def _row_of(self, constraints: ConstraintSet) -> int:
        """The row of a set; -1 if there are too many sets."""
        row = self._sets.get(constraints, -1)
        if row < 0 and self._free_rows:
            row = self._sets[constraints] = self._free_rows.pop()
        return row

    def _judge(self, task: Task) -> bool:
        """Whether a task that is seen for the first time is long. The first task of all is not."""
        if task.estimate is None:
            return False
        self._estimates = min(self._estimates + 1, ESTIMATES_AVERAGED)
        self._mean_estimate += (task.estimate - self._mean_estimate) / self._estimates
        return task.estimate > LONG_FACTOR * self._mean_estimate


SAMPLE_SECONDS = 5.0  # between two samples
MEAN_SECONDS = 180.0  # over which demand is averaged: minutes, so that batches do not move prices
LEAST_CHANGE = 0.1  # of a set's ratio that moves prices
LEAST_CHANGE_ABSOLUTE = 0.01  # a smaller change of a ratio moves no price
PRICE_STEP = 0.05  # prices are multiples of it: a smaller difference is noise
LONG_USE = 0.9  # of the nodes that all long work needs
SETS_PER_STEP = 32  # repriced in one step: 64 took 4 ms on 15,000 nodes, and 39 ms where all were new

_NEVER = (-1, -1)


class NodePrices(Struct, frozen=True, gc=False, eq=False):
    """The prices of all nodes at one time.

    `epoch`: changes with them. `price`: shape [capacity], read-only, multiples of `PRICE_STEP`, 0 where
    nothing is known. `long_limit`: the price up to which nodes suffice for all long work, used to 9 tenths.
    """

    epoch: int
    price: Floats
    long_limit: float


class PriceSummary(Struct, frozen=True, gc=False):
    """All prices, in few numbers however many nodes there are; for metrics."""

    groups: tuple[tuple[str, float], ...]  # (name of a group of nodes, mean price of its nodes)
    sets: tuple[ConstraintDemand, ...]
    classes: tuple[tuple[str, str, float], ...]  # (group, workload, its mean price there: 1 is none)


class _PricedSet(Struct, eq=False):
    constraints: ConstraintSet
    nodes: ShapeValues[np.bool_] | None = None  # evaluated when the set is priced for the first time
    ratio: float = 0.0  # demand over supply when it was priced last
    units: int = 0  # what it has added to the price of each of its nodes then
    priced: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))  # the rows of these nodes
    supplied_at: tuple[int, int] = _NEVER  # how far the nodes' changes were when its supply was summed


class NodePricing:
    """The account of prices; `update` is called when a step begins, the readers in it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.demand = SetDemand(cluster)
        self._mean: Floats = np.zeros_like(self.demand.amounts)  # not divided by `_weight`
        self._weight = 0.0  # of the samples so far in the mean, 0..1
        self._sampled_at: float | None = None
        self.next_due = -inf  # when `update` has something to do, seconds; written here only
        self._sets: dict[int, _PricedSet] = {}  # by row
        self._supply: Floats = np.zeros_like(self._mean)
        self._free: Floats = np.zeros((0, 0))  # what services leave of each node, shape [capacity, columns]
        self._seen = _NEVER  # at the last sample: how far `shape` and `service_changes` of the nodes were
        self._due: dict[int, None] = {}  # rows of sets that are to be repriced, in order
        self._units: Integers = np.zeros(0, dtype=np.int64)
        self._published = NodePrices(0, read_only(np.zeros(0)), 0.0)

    def copy(self, cluster: Cluster) -> NodePricing:
        """The same prices for the rows of a copy of the cluster; only to be read."""
        found = copy(self)
        found.follow(cluster)
        return found

    def follow(self, cluster: Cluster) -> None:
        """From now on the rows are those of this cluster."""
        self._cluster = cluster

    @property
    def current(self) -> NodePrices:
        """The prices that were published last, for the rows that there are now."""
        published, rows = self._published, self._cluster.capacity
        if len(published.price) != rows:
            price = np.zeros(rows)
            price[: len(published.price)] = published.price
            self._published = NodePrices(published.epoch + 1, read_only(price), published.long_limit)
        return self._published

    def figures(self) -> Iterator[ConstraintDemand]:
        """Demand and supply of every set that some node satisfies; O(sets)."""
        total = self._free.sum(axis=0)
        return (self._figures(row, total) for row in self._sets if self._is_known(row))

    def figures_of(self, constraints: ConstraintSet) -> ConstraintDemand | None:
        """The same of one set; None while nothing is known of it."""
        row = self.demand.sets.get(constraints)
        return self._figures(row, self._free.sum(axis=0)) if row is not None and self._is_known(row) else None

    def _is_known(self, row: int) -> bool:
        return row in self._sets and self._weight > 0.0 and bool(self._supply[row].any())

    def _figures(self, row: int, total: Floats) -> ConstraintDemand:
        demand, supply = self._mean[row] / self._weight, self._supply[row]
        column = scarcest(demand, supply)
        shares = float(demand[column] / total[column]), float(supply[column] / total[column])
        return ConstraintDemand(str(self._sets[row].constraints), *shares)

    def update(self, now: float) -> None:
        """A step begins at this time, seconds; its events do not count yet. No effect before `next_due`."""
        if self._sampled_at is None:
            self._sampled_at = now
        elif not self._due and now >= self.next_due:
            self._sample(now - self._sampled_at)
            self._sampled_at = now
        if self._due:
            for row in list(self._due)[:SETS_PER_STEP]:
                del self._due[row]
                self._reprice(row)
            if not self._due:
                self._publish()
        self.next_due = now if self._due else self._sampled_at + SAMPLE_SECONDS

    def _sample(self, seconds: float) -> None:
        """Average what has been counted for so many seconds, and find the sets that are to be repriced."""
        self._fit_arrays()
        share = 1.0 - exp(-seconds / MEAN_SECONDS)
        self._mean += share * (self.demand.amounts - self._mean)
        self._weight += share * (1.0 - self._weight)
        for constraints, row in self.demand.sets.items():
            if row not in self._sets:
                self._sets[row] = _PricedSet(constraints)
        seen = (self._cluster.shape.head, self._cluster.service_changes)
        if seen != self._seen:
            self._seen = seen
            self._free = np.maximum(self._cluster.allocatable - self._cluster.long_running, 0.0)
            self._due.update(dict.fromkeys(self._sets))
            return
        ratios = self._ratios(list(self._sets))
        priced = np.array([each.ratio for each in self._sets.values()])
        has_moved = np.abs(ratios - priced) > np.maximum(LEAST_CHANGE * priced, LEAST_CHANGE_ABSOLUTE)
        for (row, each), moved, ratio in zip(self._sets.items(), has_moved, ratios, strict=True):
            if moved or each.nodes is None or self._is_idle(row, ratio):
                self._due[row] = None

    def _fit_arrays(self) -> None:
        """Nodes may offer more resources, and there may be more rows for nodes, than at the last sample."""
        columns = len(self._cluster.columns) - self._mean.shape[1]
        if columns:
            more = ((0, 0), (0, columns))
            self._mean, self._supply = np.pad(self._mean, more), np.pad(self._supply, more)
            self.demand.widen()
        if len(self._units) != self._cluster.capacity:
            self._units = np.zeros(self._cluster.capacity, dtype=np.int64)
            for each in self._sets.values():
                each.units, each.priced = 0, np.zeros(self._cluster.capacity, dtype=bool)

    def _is_idle(self, row: int, ratio: float) -> bool:
        return ratio < LEAST_CHANGE_ABSOLUTE and not self.demand.tasks[row]

    def _ratios(self, rows: list[int]) -> Floats:
        return scarcity(self._mean[rows] / max(self._weight, UNIT), self._supply[rows])

    def _reprice(self, row: int) -> None:
        """Bring the nodes of a set, and what it adds to their prices, up to date."""
        if len(self._units) != self._cluster.capacity:
            return  # rows have been added since the sample: the next one begins with new arrays
        each = self._sets[row]
        if each.nodes is None:
            each.nodes = ShapeValues(self._cluster, np.bool_, nodes_of(self._cluster, each.constraints))
        nodes, before = each.nodes.refresh(), each.priced
        after = before if np.array_equal(before, nodes) else nodes.copy()
        if after is not before or each.supplied_at != self._seen:
            self._supply[row] = self._free[after].sum(axis=0)
            each.supplied_at = self._seen
        each.ratio = float(self._ratios([row])[0])
        is_idle = self._is_idle(row, each.ratio)
        units = 0 if is_idle else in_units(each.ratio)
        if len(before) != len(after):
            before = np.zeros(len(after), dtype=bool)
        move(self._units, before, each.units, after, units)
        each.units, each.priced = units, after
        if is_idle:
            self.demand.drop(self._sets.pop(row).constraints)
            self._mean[row] = self._supply[row] = 0.0

    def _publish(self) -> None:
        price = np.rint(self._units * (UNIT / PRICE_STEP)) * PRICE_STEP
        if len(price) != self._cluster.capacity:
            return
        limit = self._long_limit(price)
        before = self.current
        if limit != before.long_limit or not np.array_equal(price, before.price):
            self._published = NodePrices(before.epoch + 1, read_only(price), limit)

    def _long_limit(self, price: Floats) -> float:
        """The price up to which nodes supply what long work needs of its scarcest resource."""
        present = np.flatnonzero(self._cluster.present)
        needed, free = self._mean[LONG] / max(self._weight, UNIT), self._free[present]
        total = free.sum(axis=0)
        if not needed.any() or not total.any():
            return 0.0
        column = scarcest(needed, total)
        return price_to_supply(price[present], free[:, column], float(needed[column]) / LONG_USE)
