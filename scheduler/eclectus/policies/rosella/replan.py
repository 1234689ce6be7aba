"""Re-planning: one central queue; in each scheduling cycle every pending task gets the node that is best for
all.

This is the project's own, not the paper's: the paper does not compare with a central queue with late
binding, which is what kube-scheduler has. In each cycle the pending tasks are taken in their order. A task
is bound to the best node with room, that of the least service, unless a busy node has the lesser

    theta * wait + service,    wait = overflow / (k release),    service = soft price scarcity / rate

for k slots and a node whose tasks end at `release` a second in each (ReleaseRates); overflow counts what must
end before the task fits: running tasks, and those that were deferred to the node before it. Then the task
is deferred to that node until its class is asked about again: at once in every cycle in which an answer
could be another one (PlaceTraits.defers_until_change).

- theta, the weight of waiting, is what a task that waits costs others. It grows with the load of the nodes
  that are faster than the one with room (maths/replanning.py, costs.py). With theta = 1 each task takes its
  own shortest delay, and slow nodes are left idle that would serve sooner for all; with theta to infinity
  each takes the fastest node with room.
- price: 1 on nodes that are good at the class, up to 4 on those that are better used for other work
  (costs.py). scarcity: 1 on the nodes that others need least, up to 4 on those that are needed by tasks
  that can run on few (costs.py). soft: 1 where all preferences are met, 1 + `softWeight` where none is.
- No room is held for deferred tasks: what others may take is what pods do not hold. So a node never idles
  beside work that may run there because of a plan, and a deferral counts for nothing but the wait of
  others.

While nodes are not known to differ (maths/shrinkage.py), none is waited for because it looks faster.

The time a task is deferred is bounded: a task that was deferred while nodes had room takes the best of
those once it has waited as long as it would run there. So a wrong estimate can at most double a task's time
(the bound of the ski-rental problem). Once the first deferred task of a class has reached that bound, no
task of the class is deferred beside nodes as fast as that one for the rest of the cycle. A dead node is the
last choice: a task that may run elsewhere waits until the engine ends its wait (engine/wait_limit.py), any
other is placed there at once.

A cycle costs what it places and a few deferrals, not what waits. After `DEFERRED_PER_CLASS` deferrals of a
class, the number of its tasks for which waiting is better is computed in closed form (maths/replanning.py),
that many are skipped, whatever jobs they belong to, and the task behind them takes the node with room. With
one class this decides as if each task were compared; other classes see only the few deferred tasks.

What a task reads from elsewhere is part of its service time (locality.py). Data are of a task and not of its
class, so what is said of one need not hold for the next. Tasks with data on a node with room are offered
first. One of these takes the room where as many others of its class are left as would better wait. Beside
room away from its data each task is compared by itself, up to `DEFERRED_BY_DATA` deferrals of a class; only
those are skipped for which waiting is better wherever their data are. Images are those of a class: what it
takes to pull them is part of its costs (images.py).

Long-running pods (services) do not end, so they neither wait nor are waited for: they are shared among the
nodes with room in proportion to speed. Rates within a factor of 1.25 count as equal, because the estimates
are not more precise (placement tolerates errors of a third at any load); among equals the node with the
most room wins, which spreads the tasks.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from itertools import islice
from sys import maxsize
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from eclectus.cluster.scalars import read_only
from eclectus.framework import (
    Action,
    Bind,
    Defer,
    Floats,
    PendingTasks,
    Task,
    TaskClass,
    Unschedulable,
    View,
    Wait,
)
from eclectus.maths.replanning import worth_waiting
from eclectus.policies.rosella.costs import DEAD_RATE, ClassCosts, Demand, WaitingWeight, scarcity_factor
from eclectus.policies.rosella.locality import Choice, DataPrice, no_price

# How fast the tasks on each node end, by what they are.
#
# The wait for a busy node is that until tasks there have ended, and these may be of other classes than the
# task that asks: a task of 5 seconds that reckoned by its own rate would believe that one of 60 seconds ends
# in 5. The rate of a node is the mean of the rates of its tasks, each weighted with the share of the node
# that it holds; services, which do not end, are not counted.
#
# A node is reckoned again when what it holds changes, and some in turn whenever all speeds have a new epoch,
# because reading all tasks of a large cluster would take longer than a decision may. Where many nodes change
# at once (a start, a measurement of all loads), the others follow in the next steps, and until then keep the
# rate that was known: of a new node none.


ROWS_IN_TURN = 64
ROWS_MOST = 512  # that one step reckons of those that are behind: about ten milliseconds


class ReleaseRates:
    """Rates by row. `version` changes with rates of rows that the change logs did not name in this step."""

    def __init__(self) -> None:
        self._rate: Floats = np.zeros(0)
        self._published = read_only(self._rate)
        self._shape_cursor = self._usage_cursor = self._held_cursor = self._epoch = -1
        self._epoch_of: dict[int, int] = {}  # of the speeds with which each row was reckoned
        self._next = 0
        self._behind: dict[int, None] = {}  # rows that have changed and are still to be reckoned
        self._view: View | None = None  # in which the last of them were
        self.version = 0

    def refresh(self, view: View, epoch: int) -> Floats:
        """The mean rate of what runs on each row, tasks a second; 0 where nothing does; shape [capacity]."""
        cluster = view.cluster
        shape, usage = cluster.shape.head, cluster.usage.head
        if (shape, usage, epoch) != (self._shape_cursor, self._usage_cursor, self._epoch):
            is_new, self._epoch = epoch != self._epoch, epoch
            self._follow(view, self._changed(view))
            if is_new:
                first, rows = self._next, len(cluster.names)
                end = min(first + ROWS_IN_TURN, rows)
                self._next = 0 if first + ROWS_IN_TURN >= rows else end
                is_empty = view.placed.is_empty  # such rows are known to have no rate
                self._update(view, [row for row in range(first, end) if not is_empty(row)])
            self._shape_cursor, self._usage_cursor, self._held_cursor = shape, usage, cluster.held.head
        if self._behind and view is not self._view:
            # Some of the rows that are behind, once in a step.
            self._view = view
            rows_behind = list(islice(self._behind, ROWS_MOST))
            self._update(view, rows_behind)
            for row in rows_behind:
                del self._behind[row]
            self.version += 1
        return self._published

    def _changed(self, view: View) -> Collection[int]:
        """The rows that have changed since the last time; all of them where the logs do not reach back.

        What is only tentative changes nothing, unless the speeds have a new epoch.
        """
        cluster, epoch, epoch_of = view.cluster, self._epoch, self._epoch_of
        reshaped, used = cluster.shape.since(self._shape_cursor), cluster.usage.since(self._usage_cursor)
        held = cluster.held.since(self._held_cursor)
        if reshaped is None or used is None or held is None:
            return range(len(cluster.names))
        return {*reshaped, *held, *(row for row in used if epoch_of.get(row) != epoch)}

    def _follow(self, view: View, changed: Collection[int]) -> None:
        """Reckon these rows, or note that they are behind if they are too many for a step."""
        missing = view.cluster.capacity - len(self._rate)
        if missing > 0:
            self._rate = np.pad(self._rate, (0, missing))
            self._published = read_only(self._rate)
        if len(changed) > ROWS_MOST:
            self._behind.update(dict.fromkeys(changed))
        else:
            self._update(view, changed)

    def _update(self, view: View, rows: Iterable[int]) -> None:
        for row in rows:
            self._rate[row] = _mean_rate(view, row)
            self._epoch_of[row] = self._epoch


def _mean_rate(view: View, row: int) -> float:
    """The mean rate of the tasks on the row, each weighted with the largest share it holds of a resource."""
    cluster, total, weights = view.cluster, 0.0, 0.0
    allocatable: list[float] = []
    for task, _ in view.placed.on_row(row):
        if task.spec.long_running:
            continue
        allocatable = allocatable or cluster.allocatable[row].tolist()
        share = 0.0
        for column, amount in cluster.held_parts(task):
            most = allocatable[column]
            if most and (of_resource := amount / most) > share:
                share = of_resource
        total += share * view.learn.speeds(task.workload).rate.item(row)
        weights += share
    return total / weights if weights else 0.0


DEFERRED_PER_CLASS = 4  # tasks of a class deferred one by one in a cycle; other classes see these
DEFERRED_BY_DATA = 32  # likewise where data of their own let them wait; the others are asked about later


class DeferredTasks(Struct):
    """Tasks of one class that this cycle leaves waiting although nodes have room."""

    answered: int = 0  # deferred one by one, each to its node
    skipped: int = 0  # behind them, not compared: waiting is better for all of them
    ended_seconds: float = 0.0  # wait of the first task, if that was as long as allowed

    def allowed_until(self, view: View, task: Task, run_seconds: float) -> float | None:
        """Until when a task may be deferred beside a node on which it runs for so long; None for no more."""
        since = view.deferred_since.get(task.uid, view.now)
        until = since + run_seconds
        if view.now >= until and not self.answered:
            self.ended_seconds = max(self.ended_seconds, view.now - since)
        return None if view.now >= until or run_seconds <= self.ended_seconds else until


class Asked(NamedTuple):
    """A task with data, and what it is compared by."""

    view: View
    task: Task
    task_class: TaskClass
    costs: ClassCosts
    price: DataPrice


class Replan:
    """Answers pending tasks; keeps no state about tasks from cycle to cycle."""

    def __init__(
        self,
        theta: float | None,
        preference_weight: float,
        price_of: Callable[[View, Task], DataPrice | None] = no_price,
    ) -> None:
        """`price_of`: what its data cost a task; None for nothing."""
        self._preference_weight = preference_weight
        self._price_of = price_of
        self.demand = Demand()
        self._release = ReleaseRates()
        self._weight = WaitingWeight(theta, self.demand)

    def epoch(self, view: View) -> int:
        """Another number when loads or prices have been computed again."""
        return self.demand.refresh(view) + view.node_prices().epoch

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        """Place each task or defer it to a busy node; unschedulable if no node has room for its class."""
        self.epoch(view)
        deferred: dict[TaskClass, DeferredTasks] = {}
        for task in pending:
            task_class = view.task_class(task)
            waiting = deferred.setdefault(task_class, DeferredTasks())
            if task.inputs and (price := self._price_of(view, task)) is not None:
                yield from self._place_by_data(view, task, price, waiting, pending)
                continue
            action = self._answer(view, task, task_class, waiting)
            yield action
            if isinstance(action, Defer):
                waiting.answered += 1
                if waiting.answered >= DEFERRED_PER_CLASS:
                    more = self._worth_waiting(view, view.task_class(task)) - waiting.skipped
                    waiting.skipped += pending.skip(task, more)

    def _answer(self, view: View, task: Task, task_class: TaskClass, waiting: DeferredTasks) -> Action:
        if not task_class.feasible_count or not _has_room(task_class):
            return Unschedulable(task)
        costs = self.costs(view, task_class)
        with_room = self._best_with_room(view, task_class, costs)
        if with_room is None:
            return Unschedulable(task)
        row, cost = with_room
        theta = self._weight.of(view, task_class, row, costs.speeds)
        busy = self._best_busy(view, task_class, costs, theta, self)
        if busy is None or busy[1] + _by_chance(costs, row, busy[0]) >= cost:
            return Bind(task, row)
        run_seconds = 1.0 / max(costs.speeds.rate.item(row), DEAD_RATE)
        until = waiting.allowed_until(view, task, run_seconds)
        # No array counts the skipped tasks: they may be all for which waiting is better.
        if until is None or 0 < waiting.skipped >= self._worth_waiting(view, task_class):
            return Bind(task, row)
        return Defer(task, Wait(until=until, row=busy[0]))

    def _worth_waiting(self, view: View, task_class: TaskClass) -> int:
        """For how many tasks beyond the deferred ones waiting for a busy node is better."""
        if not _has_room(task_class):
            return 0
        costs = self.costs(view, task_class)
        with_room = self._best_with_room(view, task_class, costs)
        if with_room is None:
            return 0
        theta = self._weight.of(view, task_class, with_room[0], costs.speeds)
        return _worth(task_class, costs, theta, with_room)

    def _best_with_room(
        self, view: View, task_class: TaskClass, costs: ClassCosts
    ) -> tuple[int, float] | None:
        """Row and cost of the best node with room; None without such a node."""
        owner, epoch = (self, "with room"), costs.version
        if task_class.score_flips:  # a pod that is placed may change the preference scores of all nodes
            return view.ranking(
                task_class,
                costs.unweighed_with_room,
                owner,
                epoch,
                speeds=costs.speeds,
                cost_of_few=costs.each_unweighed_with_room,
                weigh=costs.weighed,
            ).best()
        few = None if task_class.spec.long_running else costs.each_with_room
        cost = costs.with_room
        return view.ranking(task_class, cost, owner, epoch, speeds=costs.speeds, cost_of_few=few).best()

    def _best_busy(
        self, view: View, task_class: TaskClass, costs: ClassCosts, theta: float, owner: object
    ) -> tuple[int, float] | None:
        """Row and cost of the best node to wait for with this weight of waiting; None if there is none.

        `owner`: of the ranking.
        """
        if task_class.spec.long_running:
            return None
        return view.ranking(
            task_class,
            partial(costs.waiting, theta),
            owner,
            (theta, self._release.version, costs.version),
            speeds=costs.speeds,
            cost_of_few=partial(costs.each_waiting, theta),
        ).best()

    def costs(self, view: View, task_class: TaskClass) -> ClassCosts:
        """Those of a class, as all is now; made once for each version of what they are made of."""
        speeds, demand = view.speeds(task_class), self.demand.of(task_class)
        release = self._release.refresh(view, speeds.epoch)
        key, version = (self, "costs"), (demand.version, view.node_prices().epoch)
        known: ClassCosts | None = task_class.derived.get(key)
        if known is not None and known.is_made_of(task_class, speeds, release, version):
            return known
        factors = (demand.factor, scarcity_factor(view, task_class))
        costs = task_class.derived[key] = ClassCosts(
            task_class,
            speeds,
            release,
            [factor for factor in factors if factor is not None],
            preference_weight=self._preference_weight,
            version=version,
        )
        return costs

    # -- tasks with data: what reading these from elsewhere takes counts (locality.py) --------------

    def _place_by_data(
        self, view: View, task: Task, price: DataPrice, waiting: DeferredTasks, pending: PendingTasks
    ) -> Iterator[Action]:
        """Place a task or defer it, and skip others for which waiting is better wherever their data are."""
        asked = self._asked(view, task, price)
        room = self._room_by_data(asked)
        if room is None:
            yield Unschedulable(task)
            return
        busy = self._busy_by_data(asked, room)
        until = None if busy is None else waiting.allowed_until(view, task, room.run_seconds)
        if busy is None or until is None or self._is_taken(asked, room, busy, waiting, pending):
            yield Bind(task, room.row)
            return
        yield Defer(task, Wait(until=until, row=busy.row))
        waiting.answered += 1
        if waiting.answered >= DEFERRED_BY_DATA:
            pending.skip(task, maxsize)
        elif waiting.answered >= DEFERRED_PER_CLASS and not room.is_near:
            more = self._worth_elsewhere(self._asked(view, task, price), room) - waiting.skipped
            waiting.skipped += pending.skip(task, more)

    def _asked(self, view: View, task: Task, price: DataPrice) -> Asked:
        task_class = view.task_class(task)
        weighed = replace(price, weight=self._weight.of_slots(task_class))
        return Asked(view, task, task_class, self.costs(view, task_class), weighed)

    def _room_by_data(self, asked: Asked) -> Choice | None:
        """The best node with room; None if there is none."""
        view, _, task_class, costs, price = asked
        if not task_class.feasible_count or not _has_room(task_class):
            return None
        elsewhere = self._best_with_room(view, task_class, costs)
        return price.best(costs, elsewhere, [costs.with_room(task_class, each.rows) for each in price.near])

    def _busy_by_data(self, asked: Asked, room: Choice) -> Choice | None:
        """The node that is better waited for than this room; None if there is none."""
        view, _, task_class, costs, price = asked
        theta = self._weight_beside(asked, room)
        beyond = theta / price.weighed(price.times)
        elsewhere = self._best_busy(view, task_class, costs, beyond, (self, "elsewhere"))
        near = [
            costs.waiting(theta / price.weighed(each.times), task_class, each.rows) for each in price.near
        ]
        busy = price.best(costs, elsewhere, near)
        if busy is None or busy.cost + _by_chance(costs, room.row, busy.row) >= room.cost:
            return None
        return busy

    def _is_taken(
        self, asked: Asked, room: Choice, busy: Choice, waiting: DeferredTasks, pending: PendingTasks
    ) -> bool:
        """Whether this task takes the room, as others of its class are those for which waiting is better.

        A room beside its data is best used by this one, if so many others are left.
        """
        if room.is_near:
            return pending.left(asked.task) >= max(self._worth_elsewhere(asked, room), 1)
        return not busy.is_near and 0 < waiting.skipped >= self._worth_elsewhere(asked, room)

    def _worth_elsewhere(self, asked: Asked, room: Choice) -> int:
        """For how many tasks waiting for a busy node is better than this room, wherever their data are."""
        _, _, task_class, costs, price = asked
        theta = self._weight_beside(asked, room)
        return _worth(task_class, costs, theta, (room.row, room.cost), price.elsewhere)

    def _weight_beside(self, asked: Asked, room: Choice) -> float:
        """theta beside this room: as of a node that is so slow for the whole class."""
        view, _, task_class, costs, _ = asked
        times = room.run_seconds * max(costs.speeds.rate.item(room.row), DEAD_RATE)
        return self._weight.of_slower(view, task_class, room.row, costs.speeds, times=times)


def _worth(
    task_class: TaskClass,
    costs: ClassCosts,
    theta: float,
    with_room: tuple[int, float],
    service_of: Callable[[Floats], Floats] = lambda service: service,
) -> int:
    """For how many tasks waiting for a busy node is better than this row with room, at this cost.

    `service_of`: makes the service time of the tasks from that of the class.
    """
    row, cost = with_room
    rows = task_class.waitable_rows
    rows = rows[~task_class.fit_beside_held(rows)]
    service = service_of(costs.of_many.service(rows)) + _by_chance(costs, row, rows)
    return worth_waiting(theta, task_class.overflow[rows], costs.of_many.release_pace(rows), service, cost)


def _by_chance(costs: ClassCosts, row: int, rows: int | NDArray[np.intp]) -> float | Floats:
    """Seconds by which these rows look faster than `row`, as long as nodes are not known to differ.

    0 where `row` is silent or dead: that is no chance.
    """
    rate, share = costs.speeds.rate, costs.speeds.share
    if costs.speeds.differ or (share is not None and share.item(row) < 1.0):
        return 0.0
    gain: Floats = 1.0 / np.maximum(rate[row], DEAD_RATE) - 1.0 / np.maximum(rate[rows], DEAD_RATE)
    return np.maximum(gain, 0.0)


def _has_room(task_class: TaskClass) -> bool:
    """Whether a node has room; cheaper than a ranking, because classes without room may be thousands."""
    return bool(task_class.fits_now_count or task_class.fit_beside_held(task_class.waitable_rows).any())
