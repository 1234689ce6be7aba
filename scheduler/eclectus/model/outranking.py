"""Which pod gives way to which, in one place: evictions, room held for a pod, and explanations follow it."""

from __future__ import annotations

from eclectus.model.objects import Task


def outranks(task: Task, other: Task) -> bool:
    """Whether the other pod may have to give up its node, or room that is held for it, for the task."""
    return other.priority < task.priority


def may_outrank(priority: float, lowest: float) -> bool:
    """Whether a task of this priority at most may outrank a pod, if no pod has less than `lowest`."""
    return lowest < priority
