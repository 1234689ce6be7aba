"""What refuses a node even without the pods that could be evicted there, for the outcome of preemption."""

from __future__ import annotations

from collections.abc import Iterable

from eclectus.feasibility.messages.funnel import room_reason
from eclectus.feasibility.room_without import RoomWithout, without_outranked
from eclectus.feasibility.task_class import TaskClass
from eclectus.feasibility.volumes.refusals import VOLUME_RULES, volume_reasons_without
from eclectus.model.objects import Task


def left_over(
    task_class: TaskClass, row: int, pods: Iterable[tuple[Task, float]], task: Task, none: str
) -> tuple[str, ...]:
    """What would refuse the task even without the pods on the row that it outranks.

    `none` where there are no such pods, and where nothing would refuse it: for a moment, before pods are
    evicted there. `pods` as for `without_outranked`.
    """
    room = without_outranked(task_class, row, pods, task)
    return (() if room is None else reasons_without(room)) or (none,)


def reasons_without(room: RoomWithout) -> tuple[str, ...]:
    """kube-scheduler's words of the first rule that refuses the node without the pods removed.

    Where room refuses it, every resource that is short. For nodes that no rule before room refuses but for
    what pods there hold; empty where the pod would fit.
    """
    task_class, row, removed = room.task_class, room.row, room.removed
    cluster, spec, usage = task_class.cluster, task_class.spec, task_class.usage_rules
    before = [rule for rule in usage if not rule.after_room and rule not in VOLUME_RULES]
    after = [rule for rule in usage if rule.after_room and rule not in VOLUME_RULES]
    topology = task_class.topology
    for rule in before:
        if not rule.holds_without(cluster, spec, row, removed):
            return (rule.reason,)
    if short := _short(room):
        return short
    if refused := volume_reasons_without(spec, cluster, row, removed):
        return refused
    if topology is not None and (reason := topology.refusal_without(row, removed)):
        return (reason,)
    return next(((rule.reason,) for rule in after if not rule.holds_without(cluster, spec, row, removed)), ())


def _short(room: RoomWithout) -> tuple[str, ...]:
    cluster = room.task_class.cluster
    names = tuple(cluster.columns)
    lacking = [name for name, _ in cluster.not_offered(room.task_class.spec.requests)]
    return tuple(room_reason(name) for name in [*(names[column] for column in room.short_columns), *lacking])
