"""Phoenix's placement for one central queue: each pod takes the node that the fewest others need.

Thinakaran, Gunasekaran, Sharma, Kandemir, Das, "Phoenix: A Constraint-aware Scheduler for Heterogeneous
Datacenters", ICDCS 2017: where many pods ask for what few nodes have, constrained pods wait, although
unconstrained ones on those nodes could run elsewhere. The demand and supply of each set of constraints, the
paper's CRV, is a price of its nodes here (maths/scarcity.py), and a pod takes the cheapest node with room.

Long pods keep off dear nodes even if no other has room: one of them holds a scarce node for as long as many
short ones. Cheap enough are the nodes that all long work needs, used to nine tenths. A long pod waits for
them no longer than it is expected to run, counted from its creation, so at most its time doubles; it does not
wait if less than half of the room that it may use is there, if prices hardly differ, or if it prefers some
nodes.

Departures:
- the paper reorders queues at nodes by the CRV. Here nothing waits at a node, and the Order is left alone
  (`order: phoenix` orders by scarcity too);
- sets of constraints are joint where the paper's CRV has one entry for each kind of constraint;
- a pod's preferences come before prices. What they ask for counts as demand of the nodes that meet them.
  For the nodes that it prefers it waits only as long as its work gains there by learned speeds
  (policies/shared/preferred_nodes.py); the paper has a table of gains;
- which pods are long is found from the estimates of late (accounts/node_prices.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import inf
from sys import maxsize
from typing import Annotated

import numpy as np

from eclectus.accounts.node_prices import PRICE_STEP
from eclectus.framework import (
    Action,
    Bind,
    Defer,
    Floats,
    NodePrices,
    PendingTasks,
    Place,
    PlaceTraits,
    Rows,
    Setting,
    Task,
    TaskClass,
    Unschedulable,
    View,
    Wait,
)
from eclectus.policies.shared.preferred_nodes import PreferredNodes

PREFERENCE_WEIGHT = 1e4  # preferences met come before any price
PRICE_WEIGHT = 2.0 / PRICE_STEP  # one step of the price comes before the load of the node, 0..1
LEAST_GAP = 5.5 * PRICE_STEP  # less: no node is dear. With .1, long pods waited where nothing was scarce
CHEAP_SHARE = 0.5  # of the slots of a class that must be cheap enough for its long pods to wait for them
DEFERRED_MOST = 64  # pods of a class that are looked at one by one in a cycle; those behind them wait too


@dataclass(eq=False)
class ScarceNodesLast(Place):
    """The cheapest node with room by scarcity, the emptiest of equal ones."""

    # Pods that are to spare dear nodes are deferred, and those that gain on the nodes they prefer.
    traits = PlaceTraits(defers=True, needs=frozenset({"prices"}))

    spare_dear: Annotated[
        bool,
        Setting(
            "long pods that can run on many nodes wait for a cheap one, at most for their own estimate",
            why="one of them on a scarce node keeps many short pods waiting that can run nowhere else",
        ),
    ] = True

    _preferred: PreferredNodes = field(init=False, default_factory=PreferredNodes)

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        """Place each task on the cheapest node; unschedulable if no node has room."""
        deferred = Counter[TaskClass]()
        for task in pending:
            task_class = view.task_class(task)
            row = self._cheapest(view, task_class) if task_class.fits_now_count else None
            if row is None:
                yield Unschedulable(task)
            elif (until := self._waits_until(view, task, task_class, row, deferred[task_class])) > view.now:
                yield Defer(task, Wait(until=until))
                deferred[task_class] += 1
                if deferred[task_class] == DEFERRED_MOST and not task.spec.preferences:
                    pending.skip(task, maxsize)
            else:
                yield Bind(task, row)

    def _cheapest(self, view: View, task_class: TaskClass) -> int | None:
        prices = view.node_prices()
        best = view.ranking(task_class, partial(self._cost, prices.price), self, prices.epoch).best()
        return None if best is None else best[0]

    def _cost(self, price: Floats, task_class: TaskClass, rows: Rows) -> Floats:
        """Preferences not met, then the price, then the load with this task, 0..1; inf without room."""
        unmet = 1.0 - task_class.preference_score[rows]
        load = 1.0 + task_class.overflow[rows] / np.maximum(task_class.empty_capacity[rows], 1.0)
        cost = PREFERENCE_WEIGHT * unmet + PRICE_WEIGHT * price[rows] + load
        return np.where(task_class.fits_now[rows], cost, np.inf)

    def _waits_until(self, view: View, task: Task, task_class: TaskClass, row: int, deferred: int) -> float:
        """How long the task keeps off this row, the cheapest with room, seconds; -inf if it takes it."""
        if task.spec.preferences:
            return self._preferred.waits_until(view, task, task_class, row, deferred)
        if not self.spare_dear or not view.is_long(task):
            return -inf
        prices = view.node_prices()
        is_dear = prices.price[row] > self._limit(task_class, prices)
        return task.created + (task.estimate or 0.0) if is_dear else -inf

    # -- long tasks ----------------------------------------------------------------------------------

    def _limit(self, task_class: TaskClass, prices: NodePrices) -> float:
        """The price above which nodes are dear to long tasks of the class; computed once an epoch."""
        key = (self, "limit")
        known: tuple[int, float] | None = task_class.derived.get(key)
        if known is None or known[0] != prices.epoch:
            known = task_class.derived[key] = (prices.epoch, _limit_of(task_class, prices))
        return known[1]


def _limit_of(task_class: TaskClass, prices: NodePrices) -> float:
    rows = task_class.waitable_rows
    if not len(rows):
        return inf
    price, slots = prices.price[rows], task_class.service_slots[rows]
    limit = max(prices.long_limit, float(price.min()) + LEAST_GAP)
    return limit if slots[price <= limit].sum() >= CHEAP_SHARE * slots.sum() else inf
