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
  (policies/place/phoenix.py); the paper has a table of gains;
- which pods are long is found from the estimates of late (accounts/node_prices.py).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from sys import maxsize
from typing import NamedTuple

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
    Task,
    TaskClass,
    Unschedulable,
    View,
    Wait,
    setting,
)
from eclectus.policies.shared import mean_seconds

# When a task gives up a preference: the choice between waiting for preferred nodes and starting elsewhere.
#
# Phoenix (Thinakaran et al., ICDCS 2017) negotiates constraints that may be relaxed; its rule is not
# published in full. The one here compares when the task would end, W and S being wait and run time on
# preferred nodes, W' the wait without the preference, g S the run time there:
#
#     relax if and only if  W + S > W' + g S
#
# with a margin for tasks that do not wait yet, so that an estimate that moves a little does not change the
# decision about each task again and again.

MARGIN = 1.1  # by how much the end on preferred nodes must be sooner for a task to begin to wait


def relaxes(
    wait_seconds: float, service_seconds: float, *, elsewhere_seconds: float, is_waiting: bool
) -> bool:
    """Whether the task takes another node than a preferred one.

    `elsewhere_seconds`: when it would end there, W' + g S, from now. `is_waiting`: it has begun to wait.
    """
    return (wait_seconds + service_seconds) * (1.0 if is_waiting else MARGIN) > elsewhere_seconds


# How long a task waits for the nodes that it prefers, by what its work gains there, as learned.
#
# Rates say how much faster the class of work runs on preferred nodes than on the one at hand. Without a gain
# nothing waits: a preference then only chooses among nodes with room.

MAX_WAITING = 64  # tasks of a class that wait for preferred nodes; each is asked about in every cycle
CHANGES = 256  # of usage, with which rates of single nodes change, until the nodes are looked at again


class _Preferred(NamedTuple):
    """The nodes of a class that meet its preferences best."""

    score: float
    slots: float
    service_seconds: float
    others_seconds: float  # mean run time on the other nodes of the class


def preference_until(view: View, task: Task, task_class: TaskClass, row: int, ahead: int) -> float:
    """When the task takes this row, the best with room, at the latest, seconds; -inf: at once.

    `ahead`: tasks of its class that wait for preferred nodes before it.
    """
    if task.spec.long_running or ahead >= MAX_WAITING:
        return -inf
    preferred = _preferred_nodes(view, task_class)
    is_preferred = task_class.scalars.preference_score[row] >= preferred.score
    if is_preferred or preferred.service_seconds == inf:
        return -inf
    service_seconds = preferred.service_seconds
    # The mean of many nodes is known better than the rate of one, and a node that only seems to be slow
    # must not keep the task waiting.
    rate = float(view.speeds(task_class).rate[row])
    elsewhere_seconds = min(1.0 / rate if rate else inf, preferred.others_seconds)
    # All preferred slots are busy: one of them is free after a mean service time over their number.
    wait_seconds = (ahead + 1) * service_seconds / preferred.slots
    since = view.deferred_since.get(task.uid)
    is_relaxed = relaxes(
        wait_seconds, service_seconds, elsewhere_seconds=elsewhere_seconds, is_waiting=since is not None
    )
    # Other classes may come first, so what is gained bounds the wait, whatever was expected.
    gained_seconds = elsewhere_seconds - service_seconds
    return -inf if is_relaxed else (view.now if since is None else since) + gained_seconds


def _preferred_nodes(view: View, task_class: TaskClass) -> _Preferred:
    """Computed once for each class and change of rates, labels or services: O(nodes) then."""
    speeds, cluster = view.speeds(task_class), view.cluster
    version = (speeds.epoch, cluster.shape.head, cluster.service_changes, cluster.usage.head // CHANGES)
    return task_class.kept(_preferred, version, task_class, speeds.rate)


def _preferred(task_class: TaskClass, rate: Floats) -> _Preferred:
    rows = task_class.waitable_rows
    score = task_class.preference_score[rows]
    best = float(score.max(initial=0.0))
    preferred, others = rows[score == best], rows[score < best]
    slots = float(task_class.service_slots[preferred].sum())
    seconds, others_seconds = (mean_seconds(task_class, rate, each) for each in (preferred, others))
    return _Preferred(best, slots, seconds, others_seconds)


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

    spare_dear: bool = setting(
        True,
        "long pods that can run on many nodes wait for a cheap one, at most for their own estimate",
        why="one of them on a scarce node keeps many short pods waiting that can run nowhere else",
    )

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        """Place each task on the cheapest node; unschedulable if no node has room."""
        deferred = Counter[TaskClass]()
        for task in pending:
            task_class = view.task_class(task)
            row = None
            if task_class.fits_now_count:
                prices = view.node_prices()
                cost = partial(self._cost, prices.price)
                best = view.ranking(task_class, cost, self, prices.epoch).best()
                row = None if best is None else best[0]
            if row is None:
                yield Unschedulable(task)
            elif (until := self._waits_until(view, task, task_class, row, deferred[task_class])) > view.now:
                yield Defer(task, Wait(until=until))
                deferred[task_class] += 1
                if deferred[task_class] == DEFERRED_MOST and not task.spec.preferences:
                    pending.skip(task, maxsize)
            else:
                yield Bind(task, row)

    def _cost(self, price: Floats, task_class: TaskClass, rows: Rows) -> Floats:
        """Preferences not met, then the price, then the load with this task, 0..1; inf without room."""
        unmet = 1.0 - task_class.preference_score[rows]
        load = 1.0 + task_class.overflow[rows] / np.maximum(task_class.empty_capacity[rows], 1.0)
        cost = PREFERENCE_WEIGHT * unmet + PRICE_WEIGHT * price[rows] + load
        return np.where(task_class.fits_now[rows], cost, np.inf)

    def _waits_until(self, view: View, task: Task, task_class: TaskClass, row: int, deferred: int) -> float:
        """How long the task keeps off this row, the cheapest with room, seconds; -inf if it takes it."""
        if task.spec.preferences:
            return preference_until(view, task, task_class, row, deferred)
        if not self.spare_dear or not view.is_long(task):
            return -inf
        prices = view.node_prices()
        is_dear = prices.price[row] > task_class.kept(_limit_of, prices.epoch, task_class, prices)
        return task.created + (task.estimate or 0.0) if is_dear else -inf


def _limit_of(task_class: TaskClass, prices: NodePrices) -> float:
    """The price above which nodes are dear to long tasks of the class."""
    rows = task_class.waitable_rows
    if not len(rows):
        return inf
    price, slots = prices.price[rows], task_class.service_slots[rows]
    limit = max(prices.long_limit, float(price.min()) + LEAST_GAP)
    return limit if slots[price <= limit].sum() >= CHEAP_SHARE * slots.sum() else inf
