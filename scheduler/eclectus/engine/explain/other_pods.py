"""Pods that an explanation names beside the one that was asked about: few of them, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence

from eclectus.engine.state import State
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.victims import victims_on
from eclectus.model.explanation import OtherPod
from eclectus.model.objects import Task

NAMED_MOST = 5  # of one node: an explanation stays short, and the rest is counted


def named(state: State, pods: Sequence[Task]) -> tuple[OtherPod, ...]:
    """The first of the pods."""
    return tuple(
        OtherPod(pod.namespace, pod.name, pod.priority, is_leaving(state, pod)) for pod in pods[:NAMED_MOST]
    )


def is_leaving(state: State, pod: Task) -> bool:
    """Whether a pod is on its way out: it is terminating, or its eviction was sent."""
    return pod.deleting or pod.uid in state.evicted


def leaving_on(state: State, row: int) -> list[Task]:
    """The pods on a row that are on their way out."""
    return [pod for pod, _ in state.placed.bound_on(row) if is_leaving(state, pod)]


def in_the_way(state: State, task_class: TaskClass, row: int, priority: float) -> list[Task]:
    """Pods of lower priority without which a task of the class fits on a row: few, most important first.

    Those that are on their way out are named where they suffice. Empty where no pod that leaves helps, and
    where room is only planned for others.
    """
    found = victims_on(state.view, task_class, row, priority)
    if found is None or found.is_room_free:
        return []
    return list(found.pods) or leaving_on(state, row)
