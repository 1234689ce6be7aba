"""Re-planning: one central queue, late bound, every task given anew the node that is best for all.

Project's own answer to the central queue that Kubernetes users already have (rosella.md 4.6). At
every event the waiting tasks are taken in their order, and each is given the node with the least

    theta * wait + service,    wait = max(0, q - k + 1) / (k rate),    service = 1 / rate

where q counts what runs there and what earlier tasks of this pass were given. If that node has room
the task is bound, else it waits, meant for that node until the next event.

theta = 1 is each task's own best, and everybody's loss: slow nodes idle while queues grow. theta to
infinity is "the fastest free node". In between a slow node is left idle only when a fast one will be
free much sooner.

What must not happen is waiting for what never comes: a task that was deferred while nodes had room
takes the best of those once it has waited as long as it would have run there. So the worst that
a wrong estimate can do is to double a task's time (the ski-rental bound).

Services do not end, so they neither wait nor are waited for: they take the room-y fast node, sharing
load among nodes in proportion to speed. Rates nearer to each other than `SPEED_STEP` count as equal,
because estimates are no better than that and need not be (within a third is enough at any load,
rosella.md 4.4); among equals the node with most room wins, which spreads work.
"""

from __future__ import annotations

from math import log

import numpy as np

from eclectus.core.journal import Rows
from eclectus.core.model import Task
from eclectus.core.seam import Action, Place, Plan, Refuse, View
from eclectus.feasibility.classes import Floats, TaskClass
from eclectus.policies.rosella.compare import least_wait

SPEED_STEP = 1.25  # rates within this factor count as equal
LOG_STEP = log(SPEED_STEP)
SPREAD = 1e-3  # how much, at most, room decides among nodes of equal cost


class Replan:
    """The answer to one task; everything else it needs is in the view."""

    def __init__(self, theta: float, soft_weight: float) -> None:
        self._theta, self._soft_weight = theta, soft_weight

    def answer(self, view: View, task: Task) -> Action:
        """Place the task, plan it on a busy node, or refuse it when no node has room for its class."""
        task_class = view.task_class(task)
        if not task_class.open_count:
            return Refuse(task)
        ranking = view.ranking(task_class, lambda group, rows: self._cost(view, group, rows), self)
        best = ranking.best()
        if best is None:
            return Refuse(task)
        row, _ = best
        if task_class.open[row]:
            return Place(task, row)
        return self._wait_or_settle(view, task, task_class, row)

    def _wait_or_settle(self, view: View, task: Task, task_class: TaskClass, row: int) -> Action:
        ranking = view.ranking(
            task_class, lambda group, rows: self._open_cost(view, group, rows), (self, "open")
        )
        settle = ranking.best()
        if settle is None:
            return Refuse(task)
        open_row, service_seconds = settle
        until = view.planned_since.get(task.uid, view.now) + service_seconds
        return Place(task, open_row) if view.now >= until else Plan(task, row, until)

    def _cost(self, view: View, task_class: TaskClass, rows: Rows) -> Floats:
        """Least first; inf where the class must not go or should not wait."""
        rate = view.speeds(task_class).rate
        if task_class.spec.lasting:
            return self._open_cost(view, task_class, rows)
        cost = self._theta * least_wait(np, task_class, rate, rows) + self._service(task_class, rate, rows)
        return np.where(task_class.feasible[rows], cost, np.inf)

    def _open_cost(self, view: View, task_class: TaskClass, rows: Rows) -> Floats:
        """Seconds to run, on nodes with room."""
        cost = self._service(task_class, view.speeds(task_class).rate, rows)
        if task_class.spec.lasting:  # q + 1 over k: the node's load with this task on it
            cost *= 1.0 + task_class.over[rows] / np.maximum(task_class.places[rows], 1.0)
        return np.where(task_class.open[rows], cost, np.inf)

    def _service(self, task_class: TaskClass, rate: Floats, rows: Rows) -> Floats:
        steps = np.rint(np.log(rate[rows]) / LOG_STEP)
        spread = 1.0 + SPREAD / (2.0 + np.maximum(-task_class.over[rows], 0.0))
        soft = 1.0 + self._soft_weight * (1.0 - task_class.soft[rows])
        return np.asarray(np.exp(-LOG_STEP * steps) * spread * soft)
