"""The victims of preemption on one node: as few and as unimportant pods as make room for a task.

A question, which changes nothing: policies ask it before they evict, and explanations in their place.

kube-scheduler's selection (SelectVictimsOnNode): all pods of lower priority are removed; then they are put
back while the task still fits, first those whose eviction would violate a PodDisruptionBudget, then the
others, each the most important first. What cannot be put back is a victim.

Departures:
- of two pods of equal priority the one that is on its way out is less important, whatever their ages, and it
  counts as no victim, because it goes anyway;
- a copy, whose work another pod does, is less important than any pod that may have to go, whatever its
  priority, and costs less. Where there is one, what is on its way out goes first of all, or the copy would
  go beside it for nothing.
"""

from collections.abc import Callable
from math import inf

from msgspec import Struct

from eclectus.feasibility.fit_error import RoomWithout
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.view import View
from eclectus.model.objects import Task, outranks

GivesWay = Callable[[Task], bool]
# What a pod costs a step, in comparisons with budgets; a third of it on a node where no eviction helps.
COMPARISONS_OF_POD = 12
PRIORITY_OFFSET = 2**31  # added to each priority, so that more victims are never a smaller sum
COPY_PRIORITY = -PRIORITY_OFFSET  # with which copies count: no pod has less


class Victims(Struct, frozen=True):
    """What must be evicted from one node, and how bad that is.

    `cost`: kube-scheduler's criteria, smaller is better: violated budgets; highest priority of a victim; sum
    of their priorities; their number; the earliest start of those of the highest priority, negated, so that
    pods that have run for long are spared.
    """

    pods: tuple[Task, ...]  # most important first; without those that are on their way out
    is_room_free: bool  # the task fits beside all pods: waiting tasks alone are in its way
    cost: tuple[float, ...]
    has_budget: bool  # whether a pod of lower priority on the node has a PodDisruptionBudget


class _LowerPod(Struct, frozen=True):
    """A pod of lower priority, with what decides whether it is spared."""

    pod: Task
    is_going: bool  # it is terminating, or its eviction was sent
    since: float  # when the kubelet has accepted it; as long as it has not, when it took its room

    @property
    def priority(self) -> int:
        """With which it counts."""
        return COPY_PRIORITY if self.pod.copy_of else self.pod.priority

    @property
    def rank(self) -> tuple[float, ...]:
        """Most important first."""
        return (-self.priority, self.is_going, self.since)


def may_be_victim(view: View, task: Task, pod: Task) -> bool:
    """Whether a pod may have to make room for the task: not soon after its eviction was refused."""
    return outranks(task, pod) and (pod.deleting or pod.uid not in view.spared)


def victims_on(view: View, task_class: TaskClass, row: int, gives_way: GivesWay) -> Victims | None:
    """The victims on a row for a task of this class; None where no eviction makes room.

    `gives_way`: of a pod, whether it may have to make room for the task.
    """
    lower = []
    room = RoomWithout(task_class, row)
    there = list(view.placed.on_row(row))
    view.budgets.charge(len(there) * COMPARISONS_OF_POD // 3)
    for pod, since in there:
        if not gives_way(pod):
            continue
        if pod.node:
            accepted = since if pod.accepted is None else pod.accepted
            lower.append(_LowerPod(pod, pod.deleting or pod.uid in view.evicted, accepted))
        elif not view.placed.is_nominated(pod.uid):
            continue  # it is being bound: whether it may be evicted is known when it is
        room.remove(pod)
    if not room.fits:
        return None
    of_each = 2 * COMPARISONS_OF_POD // 3 + (len(lower) if task_class.usage_rules else 0)
    view.budgets.charge(len(lower) * of_each)  # rules about usage go through the others of each
    lower.sort(key=lambda each: each.rank)
    staying = [each for each in lower if not each.is_going]
    violates = view.budgets.violated_by(each.pod for each in staying)
    protected = {each.pod.uid for each, does in zip(staying, violates, strict=True) if does}
    may_take_copies = any(each.pod.copy_of for each in staying)
    # The sort is stable: the groups stay in the order of importance.
    spared_first = sorted(
        lower, key=lambda each: (each.pod.uid not in protected, may_take_copies and each.is_going)
    )
    victims = [each for each in spared_first if not is_spared(room, each.pod)]
    has_budget = any(view.budgets.applies_to(each.pod) for each in lower)
    return _judged(victims, protected, has_budget)


def is_spared(room: RoomWithout, pod: Task) -> bool:
    """Whether the task fits beside the pod after all; otherwise the pod is left out of the room again."""
    room.restore(pod)
    if room.fits:
        return True
    room.remove(pod)
    return False


def _judged(needed: list[_LowerPod], protected: set[str], has_budget: bool) -> Victims:
    victims = sorted((each for each in needed if not each.is_going), key=lambda each: each.rank)
    highest = victims[0].priority if victims else -inf
    cost = (
        sum(each.pod.uid in protected for each in victims),
        highest,
        sum(each.priority + PRIORITY_OFFSET for each in victims),
        len(victims),
        -min((each.since for each in victims if each.priority == highest), default=0.0),
    )
    return Victims(tuple(each.pod for each in victims), not needed, cost, has_budget)
