"""Re-planning: one central queue, late bound, every task given anew the node that is best for all.

Project's own answer to the central queue that Kubernetes users already have (rosella.md 4.6). At
every event the waiting tasks are taken in their order, and each is given the node with the least

    theta * wait + service,    wait = max(0, q - k + 1) / (k rate),    service = 1 / rate

where q counts what runs there and what earlier tasks of this pass were given. If that node has room
the task is bound, else it waits, meant for that node until the next event.

theta = 1 is each task's own best, and everybody's loss: slow nodes idle while queues grow. theta to
infinity is "the fastest free node". In between a slow node is left idle only when a fast one will be
free much sooner. Unless it is set, it goes by load and slots (weight.py).

What must not happen is waiting for what never comes: a task that was deferred while nodes had room
takes the best of those once it has waited as long as it would have run there. So the worst that
a wrong estimate can do is to double a task's time (the ski-rental bound). When the first in
line has waited in vain, those behind it wait no more either.

A round costs what it places and a few plans, not what waits: after `PLANNED_MOST` plans for a class the
number of those for whom waiting is better is reckoned (maths/deferring.py), they are passed over, and
whoever stands behind them takes the node with room. For one kind of work that is what planning all of
them would decide; other kinds see only the few as waiting.

Services do not end, so they neither wait nor are waited for: they take the room-y fast node, sharing
load among nodes in proportion to speed. Rates nearer to each other than `SPEED_STEP` count as equal,
because estimates are no better than that and need not be (within a third is enough at any load,
rosella.md 4.4); among equals the node with most room wins, which spreads work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log

import numpy as np

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.task_class import Floats, TaskClass
from eclectus.framework import Action, Defer, PendingTasks, Place, Unschedulable, View
from eclectus.maths.deferring import worth_waiting
from eclectus.model.objects import Task
from eclectus.policies.rosella.place.compare import least_wait
from eclectus.policies.rosella.place.weight import WaitingWeight

SPEED_STEP = 1.25  # rates within this factor count as equal
LOG_STEP = log(SPEED_STEP)
SPREAD = 1e-3  # how much, at most, room decides among nodes of equal cost


DEFERRED_PER_CLASS = 4  # tasks of a class planned one by one in a round: what other classes see of its queue


@dataclass
class DeferredTasks:
    """Those of one class that one round has left waiting though nodes have room."""

    answered: int = 0  # one by one, each meant for its node
    skipped: int = 0  # behind them, not looked at: waiting is better for all of them
    is_expired: bool = False  # the first in line has waited for nothing: nobody else shall


class Replan:
    """The answers of one round; everything else they need is in the view."""

    def __init__(self, theta: float | None, soft_weight: float) -> None:
        self._weight, self._soft_weight = WaitingWeight(theta), soft_weight

    def place(self, view: View, turns: PendingTasks) -> Iterator[Action]:
        """Place each task, plan it on a busy node, or refuse it when no node has room for its class."""
        waits: dict[TaskClass, DeferredTasks] = {}
        for task in turns:
            task_class = view.task_class(task)
            if not task_class.fits_now_count:
                yield Unschedulable(task)
                continue
            waiting = waits.setdefault(task_class, DeferredTasks())
            action = self._answer(view, task, task_class, waiting)
            yield action
            if isinstance(action, Defer):
                waiting.answered += 1
                if waiting.answered >= DEFERRED_PER_CLASS:
                    more = self._worth_waiting(view, view.task_class(task)) - waiting.skipped
                    waiting.skipped += turns.skip(task, more)

    def _answer(self, view: View, task: Task, task_class: TaskClass, waiting: DeferredTasks) -> Action:
        theta = self._weight.of(view, task_class)
        ranking = view.ranking(
            task_class, lambda group, rows: self._cost(view, group, rows, theta), (self, theta)
        )
        best = ranking.best()
        if best is None:
            return Unschedulable(task)
        row, _ = best
        if task_class.fits_now[row]:
            return Place(task, row)
        settle = self._best_with_room(view, task_class)
        if settle is None:
            return Unschedulable(task)
        open_row, service_seconds = settle
        until = view.deferred_since.get(task.uid, view.now) + service_seconds
        if view.now >= until and not waiting.answered:
            waiting.is_expired = True
        if waiting.is_expired or view.now >= until or self._has_enough_waiting(view, task_class, waiting):
            return Place(task, open_row)
        return Defer(task, row, until)

    def _has_enough_waiting(self, view: View, task_class: TaskClass, waiting: DeferredTasks) -> bool:
        """Whether those passed over, who count in no array, have taken all places worth waiting for."""
        return waiting.skipped > 0 and self._worth_waiting(view, task_class) <= waiting.skipped

    def _worth_waiting(self, view: View, task_class: TaskClass) -> int:
        """How many more tasks than are meant for busy nodes had better wait for one."""
        settle = self._best_with_room(view, task_class)
        if settle is None:
            return 0
        rows = np.flatnonzero(task_class.feasible & ~task_class.fits_now)
        rate = view.speeds(task_class).rate
        pace = task_class.service_slots[rows] * rate[rows] * task_class.background_free[rows]
        service = self._service(task_class, rate, rows)
        theta = self._weight.of(view, task_class)
        return worth_waiting(theta, task_class.overflow[rows], pace, service, settle[1])

    def _best_with_room(self, view: View, task_class: TaskClass) -> tuple[int, float] | None:
        """The best node with room, and the seconds a task runs there."""
        return view.ranking(
            task_class, lambda group, rows: self._cost_with_room(view, group, rows), (self, "open")
        ).best()

    def _cost(self, view: View, task_class: TaskClass, rows: Rows, theta: float) -> Floats:
        """Least first; inf where the class must not go or should not wait."""
        rate = view.speeds(task_class).rate
        if task_class.spec.long_running:
            return self._cost_with_room(view, task_class, rows)
        cost = theta * least_wait(np, task_class, rate, rows) + self._service(task_class, rate, rows)
        return np.where(task_class.feasible[rows], cost, np.inf)

    def _cost_with_room(self, view: View, task_class: TaskClass, rows: Rows) -> Floats:
        """Seconds to run, on nodes with room."""
        cost = self._service(task_class, view.speeds(task_class).rate, rows)
        if task_class.spec.long_running:  # q + 1 over k: the node's load with this task on it
            cost *= 1.0 + task_class.overflow[rows] / np.maximum(task_class.empty_capacity[rows], 1.0)
        return np.where(task_class.fits_now[rows], cost, np.inf)

    def _service(self, task_class: TaskClass, rate: Floats, rows: Rows) -> Floats:
        steps = np.rint(np.log(rate[rows]) / LOG_STEP)
        spread = 1.0 + SPREAD / (2.0 + np.maximum(-task_class.overflow[rows], 0.0))
        soft = 1.0 + self._soft_weight * (1.0 - task_class.preference_score[rows])
        return np.asarray(np.exp(-LOG_STEP * steps) * spread * soft)
