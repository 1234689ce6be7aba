"""Pods that an explanation names beside the one that was asked about: few of them, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from eclectus.engine.state import State
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.victims import victims_on
from eclectus.model.explanation import OtherPod
from eclectus.model.objects import Task
from eclectus.model.outranking import outranks

NAMED_MOST = 5  # of one node: an explanation stays short, and the rest is counted


class InTheWay(NamedTuple):
    """What keeps a node from having room for a pod that it could run."""

    pods: Sequence[Task] = ()  # without these it would fit, most important first
    is_planned: bool = False  # nothing but room that is planned for pods that wait


def named(state: State, pods: Sequence[Task]) -> tuple[OtherPod, ...]:
    """The first of the pods."""
    return tuple(
        OtherPod(
            pod.namespace,
            pod.name,
            pod.priority,
            leaving=is_leaving(state, pod),
            nominated=state.placed.is_nominated(pod.uid),
        )
        for pod in pods[:NAMED_MOST]
    )


def is_leaving(state: State, pod: Task) -> bool:
    """Whether a pod is on its way out: it is terminating, or its eviction was sent."""
    return pod.deleting or pod.uid in state.evicted


def leaving_on(state: State, row: int) -> list[Task]:
    """The pods on a row that are on their way out."""
    return [pod for pod, _ in state.placed.bound_on(row) if is_leaving(state, pod)]


def in_the_way(state: State, task: Task, task_class: TaskClass, row: int) -> InTheWay | None:
    """What keeps the task from a row; None where it could not run there if all pods left.

    Pods of lower priority are named where they suffice, because they may be evicted, and pods on their way
    out or nominated pods where these do.
    """
    for gives_way in (partial(outranks, task), _leaves):
        found = victims_on(state.view, task_class, row, gives_way)
        if found is None:
            continue
        if not found.is_room_free:
            return InTheWay(found.pods or leaving_on(state, row))
        on_node = state.placed.nominated_on(state.cluster.names[row])
        pods = [pod for pod in on_node if gives_way(pod) and pod.uid != task.uid]
        return InTheWay(pods, is_planned=not pods)
    return None


def _leaves(pod: Task) -> bool:
    """If all pods left, every one would."""
    return True
