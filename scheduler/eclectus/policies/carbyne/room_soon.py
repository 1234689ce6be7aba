"""On which node there will be room for a task soonest, by when the pods there are expected to end."""

from __future__ import annotations

from math import inf

import numpy as np

from eclectus.feasibility.room_without import RoomWithout
from eclectus.framework import Task, TaskClass, View
from eclectus.policies.carbyne.paces import node_paces
from eclectus.policies.carbyne.planned_job import time_left

NODES_MOST = 32  # compared by the ends of their pods: those that lack least


def node_with_room_soonest(view: View, task_class: TaskClass) -> tuple[int, float] | None:
    """The row that is expected to have room first, and when, seconds; None if no end of pods makes room.

    Where no end is known (inf), the node that lacks least. Nodes on which room is held for others are left
    out.
    """
    rows = np.flatnonzero(task_class.feasible)
    nearest = rows[np.argsort(task_class.overflow[rows], kind="stable")][: 2 * NODES_MOST].tolist()
    without_others = [row for row in nearest if not _is_held_for_others(view, row)][:NODES_MOST]
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
    for pod, since in view.placed_pods(row):
        if task is not None and pod.uid == task.uid:
            room.remove(pod)
        elif not pod.spec.long_running and not view.is_nominated(pod.uid):
            seconds = inf if pod.estimate is None or pace <= 0.0 else pod.estimate / pace
            ends.append((view.now + time_left(seconds, view.now, since), pod))
    for end, pod in sorted(ends, key=lambda each: each[0]):
        room.remove(pod)
        if room.fits:
            return end
    return None


def _is_held_for_others(view: View, row: int) -> bool:
    return any(view.is_nominated(pod.uid) for pod, _ in view.placed_pods(row))
