"""Re-planning: one central queue; in each scheduling cycle every pending task gets the node that is best
for all.

This is the project's own, not the paper's: the paper does not compare with a central queue with late binding,
which is what kube-scheduler has. In each cycle the pending tasks are taken in their order, and each is given
the node with the least

    theta * wait + service,    wait = max(0, q - k + 1) / (k rate),    service = 1 / rate

where q counts the tasks that run there and those that earlier tasks of this cycle were given. If the node has
room, the task is bound. Otherwise the task is deferred to that node until its class is asked about again:
at once in every cycle in which an answer could be another one (PlaceTraits.defers_until_change).

With theta = 1 each task takes its own shortest delay, and slow nodes are given tasks that fast nodes would
serve sooner for all. With theta to infinity each task takes the fastest node with room. In between, a slow
node stays idle only if a fast one will be free much sooner. Unless it is set, theta is computed from load and
slots (weight.py).

The time a task is deferred is bounded: a task that was deferred while nodes had room takes the best of
those once it has waited as long as it would run there. So a wrong estimate can at most double a task's time
(the bound of the ski-rental problem). Once the first deferred task of a class has reached that bound, no
task of the class is deferred for the rest of the cycle. A dead node is the last choice: a task that may run
elsewhere waits until the engine ends its wait (engine/wait_limit.py), any other is placed there at once.

A cycle costs what it places and a few deferrals, not what waits. After `DEFERRED_PER_CLASS` deferrals of a
class, the number of its tasks for which waiting is better is computed in closed form (maths/deferring.py),
that many are skipped, whatever jobs they belong to, and the task behind them takes the node with room. With
one class this decides as if each task were compared; other classes see only the few deferred tasks.

Long-running pods (services) do not end, so they neither wait nor are waited for: they are shared among the
nodes with room in proportion to speed. Rates within a factor of `SPEED_STEP` count as equal, because the
estimates are not more precise (placement tolerates errors of a third at any load); among equals the node with
the most room wins, which spreads the tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.room import Floats
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, Defer, PendingTasks, Place, Unschedulable, View
from eclectus.maths.deferring import worth_waiting
from eclectus.model.objects import Task
from eclectus.policies.rosella.place.compare import DEAD_RATE, least_wait
from eclectus.policies.rosella.place.weight import WaitingWeight

SPEED_STEP = 1.25  # rates within this factor count as equal
LOG_STEP = log(SPEED_STEP)
SPREAD = 1e-3  # the most that free room changes a cost: it decides among equal costs only
DEFERRED_PER_CLASS = 4  # tasks of a class deferred one by one in a cycle; other classes see these


@dataclass
class DeferredTasks:
    """Tasks of one class that this cycle leaves waiting although nodes have room."""

    answered: int = 0  # deferred one by one, each to its node
    skipped: int = 0  # behind them, not compared: waiting is better for all of them
    is_expired: bool = False  # the first task has waited as long as allowed: no more deferrals


class Replan:
    """Answers pending tasks; keeps no state about tasks from cycle to cycle."""

    def __init__(self, theta: float | None, preference_weight: float) -> None:
        self._weight, self._preference_weight = WaitingWeight(theta), preference_weight

    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        """Place each task or defer it to a busy node; unschedulable if no node has room for its class."""
        deferred: dict[TaskClass, DeferredTasks] = {}
        for task in pending:
            task_class = view.task_class(task)
            if not task_class.fits_now_count:
                yield Unschedulable(task)
                continue
            waiting = deferred.setdefault(task_class, DeferredTasks())
            action = self._answer(view, task, task_class, waiting)
            yield action
            if isinstance(action, Defer):
                waiting.answered += 1
                if waiting.answered >= DEFERRED_PER_CLASS:
                    more = self._worth_waiting(view, view.task_class(task)) - waiting.skipped
                    waiting.skipped += pending.skip(task, more)

    def _answer(self, view: View, task: Task, task_class: TaskClass, waiting: DeferredTasks) -> Action:
        theta = self._weight.of(view, task_class)
        ranking = view.ranking(
            task_class, lambda group, rows: self._cost(view, group, rows, theta), self, theta
        )
        best = ranking.best()
        if best is None:
            return Unschedulable(task)
        row, _ = best
        if task_class.fits_now[row]:
            return Place(task, row)
        fallback = self._best_with_room(view, task_class)
        if fallback is None:
            return Unschedulable(task)
        fallback_row, service_seconds = fallback
        until = view.deferred_since.get(task.uid, view.now) + service_seconds
        if view.now >= until and not waiting.answered:
            waiting.is_expired = True
        if waiting.is_expired or view.now >= until or self._has_enough_waiting(view, task_class, waiting):
            return Place(task, fallback_row)
        return Defer(task, row, until)

    def _has_enough_waiting(self, view: View, task_class: TaskClass, waiting: DeferredTasks) -> bool:
        """Whether the skipped tasks, which no array counts, are all for which waiting is better."""
        return waiting.skipped > 0 and self._worth_waiting(view, task_class) <= waiting.skipped

    def _worth_waiting(self, view: View, task_class: TaskClass) -> int:
        """For how many tasks beyond the deferred ones waiting for a busy node is better."""
        fallback = self._best_with_room(view, task_class)
        if fallback is None:
            return 0
        rows = np.flatnonzero(task_class.feasible & ~task_class.fits_now)
        rate = view.speeds(task_class).rate
        pace = task_class.service_slots[rows] * rate[rows] * task_class.background_free[rows]
        service = self._service(task_class, rate, rows)
        theta = self._weight.of(view, task_class)
        return worth_waiting(theta, task_class.overflow[rows], pace, service, fallback[1])

    def _best_with_room(self, view: View, task_class: TaskClass) -> tuple[int, float] | None:
        """The row of the best node with room, and the seconds a task runs there; None without such a node."""
        return view.ranking(
            task_class, lambda group, rows: self._cost_with_room(view, group, rows), (self, "with room")
        ).best()

    def _cost(self, view: View, task_class: TaskClass, rows: Rows, theta: float) -> Floats:
        """theta * wait + service; inf where the class may not run."""
        rate = view.speeds(task_class).rate
        if task_class.spec.long_running:
            return self._cost_with_room(view, task_class, rows)
        cost = theta * least_wait(np, task_class, rate, rows) + self._service(task_class, rate, rows)
        return np.where(task_class.feasible[rows], cost, np.inf)

    def _cost_with_room(self, view: View, task_class: TaskClass, rows: Rows) -> Floats:
        """Seconds that a task runs on nodes with room; inf on others."""
        cost = self._service(task_class, view.speeds(task_class).rate, rows)
        if task_class.spec.long_running:  # (q + 1) / k: the load of the node with this pod
            cost *= 1.0 + task_class.overflow[rows] / np.maximum(task_class.empty_capacity[rows], 1.0)
        return np.where(task_class.fits_now[rows], cost, np.inf)

    def _service(self, task_class: TaskClass, rate: Floats, rows: Rows) -> Floats:
        """Seconds that a task runs on each of the rows, rates in steps; room and preferences weighed in."""
        steps = np.rint(np.log(np.maximum(rate[rows], DEAD_RATE)) / LOG_STEP)
        spread = 1.0 + SPREAD / (2.0 + np.maximum(-task_class.overflow[rows], 0.0))
        penalty = 1.0 + self._preference_weight * (1.0 - task_class.preference_score[rows])
        return np.asarray(np.exp(-LOG_STEP * steps) * spread * penalty)
