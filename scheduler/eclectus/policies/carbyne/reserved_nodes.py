"""The nodes that are kept free for due tasks which have found no room for long.

What a reservation costs others is bounded: it counts as held by its job, so it stays within the job's share;
a job has one at a time; and all of them together take a small part of the nodes.
"""

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import numpy as np

from eclectus.feasibility.fit_error import RoomWithout
from eclectus.framework import Nominate, Refused, Task, TaskClass, View
from eclectus.policies.carbyne.planned_job import node_paces, time_left
from eclectus.policies.carbyne.planner import Planner

NODES_MOST = 32  # compared by the ends of their pods: those that lack least


def node_with_room_soonest(view: View, task_class: TaskClass) -> tuple[int, float] | None:
    """The row that is expected to have room first, and when, seconds; None if no end of pods makes room.

    Where no end is known (inf), the node that lacks least. Nodes on which room is held for others are left
    out.
    """
    rows = np.flatnonzero(task_class.feasible)
    nearest = rows[np.argsort(task_class.overflow[rows], kind="stable")][: 2 * NODES_MOST].tolist()
    placed = view.placed
    without_others = [
        row for row in nearest if not any(placed.is_nominated(pod.uid) for pod, _ in placed.on_row(row))
    ][:NODES_MOST]
    paces = node_paces(view, task_class) if without_others else ()
    times = {row: room_at(view, task_class, row, paces[row]) for row in without_others}
    found = [(row, at) for row, at in times.items() if at is not None]
    return min(found, key=lambda each: each[1], default=None)  # of equal times the first


def room_at(
    view: View, task_class: TaskClass, row: int, pace: float, task: Task | None = None
) -> float | None:
    """When the pods on a row are expected to have left room for a task of the class, seconds.

    By their estimates, over the node's `pace` for the class; inf where the end of one is unknown, None where
    services are in the way. `task`: one that is nominated to the node itself.
    """
    room, ends = RoomWithout(task_class, row), list[tuple[float, Task]]()
    for pod, since in view.placed.on_row(row):
        if task is not None and pod.uid == task.uid:
            room.remove(pod)
        elif not pod.spec.long_running and not view.placed.is_nominated(pod.uid):
            seconds = inf if pod.estimate is None or pace <= 0.0 else pod.estimate / pace
            ends.append((view.now + time_left(seconds, view.now, since), pod))
    for end, pod in sorted(ends, key=lambda each: each[0]):
        room.remove(pod)
        if room.fits:
            return end
    return None


NODES_PART = 0.1  # of all nodes, that are kept free at a time; one at least
# A node is kept free for this time, or for so many times what room is expected to take if that is longer.
LEAST_SECONDS, MOST_TIMES = 300.0, 2.0


class _Reservation(NamedTuple):
    task: str  # uid
    node: str
    until: float  # seconds


class _Wait(NamedTuple):
    task: str  # uid of the first task of a stage
    since: float  # when it was first found to be due and without room, seconds


class ReservedNodes:
    """The tasks for which nodes are kept free, and since when others have waited for one.

    `after`: how long a due task finds no room before a node is reserved for it, seconds.
    """

    def __init__(self, planner: Planner, after: float) -> None:
        self._planner = planner
        self._after = after
        self._waits: dict[str, dict[int, _Wait]] = {}  # by job and stage
        self._reserved: dict[str, _Reservation] = {}  # by job

    def reserve(self, view: View, refused: Refused) -> Iterator[Nominate]:
        """Reserve a node for each job of which the first task has waited for long enough."""
        self._forget_ended(view)
        for task in refused.tasks:
            if not self._has_waited(view, task) or not self._may_reserve(view, task):
                continue
            found = node_with_room_soonest(view, view.task_class(task))
            if found is None:
                return  # nor would any node have room for another task of the class
            self._set(view, task, *found)
            yield Nominate(task, found[0])

    def keeps(self, view: View, task: Task, row: int) -> bool:
        """Whether the node of this row is still kept free for the task, which is nominated to it."""
        self._forget_ended(view)
        found = self._planner.stage_of(view, task)
        if found is None:
            return False
        if self._may_reserve(view, task):  # of a process before, of which only the task's status tells
            task_class = view.task_class(task)
            at_time = room_at(view, task_class, row, node_paces(view, task_class)[row], task)
            if at_time is not None:
                self._set(view, task, row, at_time)
        reservation = self._reserved.get(task.job)
        if reservation is None or reservation.task != task.uid:
            return False
        job, at = found
        is_due = job.known.is_ready(job.known.stages[at]) and not job.known.job.suspended
        if is_due and job.has_share_for(at, is_held=True) and view.now < reservation.until:
            return True
        del self._reserved[task.job]
        self._waits.setdefault(task.job, {})[at] = _Wait(task.uid, view.now)
        return False

    def placed(self, task: Task) -> None:
        """The task is bound, to the node that was reserved for it or to another."""
        reservation = self._reserved.get(task.job)
        if reservation is not None and reservation.task == task.uid:
            del self._reserved[task.job]
            self._planner.changed_plans.record(task.job)

    def node_for(self, view: View, job: str) -> str:
        """The node that is kept free for a task of the job; empty for none."""
        reservation = self._reserved.get(job)
        if reservation is None or not view.placed.is_nominated(reservation.task):
            return ""
        return reservation.node

    def _set(self, view: View, task: Task, row: int, at: float) -> None:
        """Reserve the node of this row. `at`: when it should have room, seconds; inf if that is unknown."""
        expected = 0.0 if at == inf else MOST_TIMES * (at - view.now)
        until = view.now + max(expected, LEAST_SECONDS)
        self._reserved[task.job] = _Reservation(task.uid, view.cluster.names[row], until)

    def _may_reserve(self, view: View, task: Task) -> bool:
        """Whether the job of the task has no node yet, and all jobs have few."""
        most = max(int(len(view.cluster) * NODES_PART), 1)
        return task.job not in self._reserved and len(self._reserved) < most

    def _has_waited(self, view: View, task: Task) -> bool:
        """Whether the task, which has no room now, has been due without room for long enough."""
        found = self._planner.stage_of(view, task)
        if found is None:
            return False
        job, at = found
        waits = self._waits.setdefault(task.job, {})
        if not (job.has_share_for(at) and job.due(at, view.now)):
            waits.pop(at, None)
            return False
        if at not in waits or waits[at].task != task.uid:
            waits[at] = _Wait(task.uid, view.now)
        return view.now - waits[at].since >= self._after

    def _forget_ended(self, view: View) -> None:
        """Reservations whose tasks are not nominated any more, and jobs that are gone."""
        for job in [job for job, each in self._reserved.items() if not view.placed.is_nominated(each.task)]:
            del self._reserved[job]
        if len(self._waits) > len(self._planner.jobs):
            self._waits = {job: each for job, each in self._waits.items() if job in self._planner.jobs}
