"""Phoenix's order for one central queue: of equal priority, first the pods that may run on few nodes.

Thinakaran, Gunasekaran, Sharma, Kandemir, Das, "Phoenix: A Constraint-aware Scheduler for Heterogeneous
Datacenters", ICDCS 2017, reorders queues so that pods whose constraints few nodes satisfy go first. Here the
rank of a set of constraints is

    age of its eldest pod / cores on the nodes that satisfy the set

so a pod on a twentieth of the nodes goes before a flexible one that is up to twenty times as old. Demand over
supply as the rank would put flexible pods first: they are many. Within a set the eldest goes first.

Overtaking is bounded: a later pod that takes a slot which another could have used delays that one by its own
estimate over the slots of the other's set. Once these delays exceed `slack` times the estimate of the delayed
pod, it goes by age alone, before all that are not in this position. What is counted for the eldest of a group
is no less than that of those behind it, so only pods of about one estimate form a group. Pods without an
estimate count 1 s.

An order gives nothing to one that it does not take from others: with one kind of node the work-weighted mean
wait is the same in every order (conservation law, Kleinrock 1965). So this is not the default.

Departures: the paper's CRV orders queues at nodes and has one entry for each kind of constraint; its slack
counts an overtaking with the whole estimate, which in a central queue of many slots forbids nearly all.
"""

from dataclasses import dataclass
from heapq import heappop, heappush
from math import frexp, ldexp
from typing import NamedTuple

from eclectus.feasibility.constraint_set import constraint_set
from eclectus.framework import Order, OrderTraits, Task, TaskClass, View, setting

# By how much a queue's first task has been delayed by tasks that came later and went first.
#
# Behind the first task stand tasks that came later than it. A task that overtakes one of them overtakes the
# first as well, as long as that waits; and when it has left, only those count that came later than the next
# one. So one heap by time of arrival is enough for all tasks of the queue.


class Delays:
    """The delays of a first come, first served queue by tasks of other queues."""

    def __init__(self) -> None:
        # A heap: when each arrived and by how much it delays.
        self._overtakers: list[tuple[float, float]] = []
        self._sum = 0.0  # seconds

    def add(self, arrived: float, seconds: float) -> None:
        """A task that arrived at this time has gone first, and delays the queue by so many seconds."""
        heappush(self._overtakers, (arrived, seconds))
        self._sum += seconds

    def of_first(self, arrived: float) -> float:
        """The delay of the first task, which arrived at this time, seconds; first tasks come in order."""
        while self._overtakers and self._overtakers[0][0] <= arrived:
            self._sum -= heappop(self._overtakers)[1]
        if not self._overtakers:
            self._sum = 0.0  # exactly
        return self._sum


UNKNOWN_ESTIMATE = 1.0  # seconds: without estimates all count alike
GROUPS_MOST = 1024  # of which delays are kept while nothing of them waits


class First(NamedTuple):
    """The first task of a group, as it was last ranked."""

    now: float  # then
    task: Task
    task_class: TaskClass
    slots: float


@dataclass(eq=False)
class FewestNodesFirst(Order):
    """Priority, then age over the size of the nodes that the constraints leave."""

    traits = OrderTraits(ranks_by_time=True, needs=frozenset({"binds"}))

    slack: float = setting(
        5.0,
        "how often a pod's own estimate it may be delayed by later pods that go first",
        why="the slack of Eagle, which Phoenix keeps",
        least=0,
    )

    def __post_init__(self) -> None:
        self._delays: dict[str, Delays] = {}  # by group; a loss costs only what is counted so far
        self._first: dict[str, First] = {}  # by group

    def group(self, task: Task) -> str:
        """The set of constraints, and the estimate rounded down to a power of two."""
        return f"{constraint_set(task.spec)}, {_rounded_estimate(task):g} s"

    def rank(self, view: View, group: str, head: Task) -> tuple[float, ...]:
        """By priority; then those that were delayed enough by age, before all others by age over cores."""
        task_class = view.task_class(head)
        cluster = task_class.cluster
        cores, slots = task_class.kept(_size, (cluster.shape.head, cluster.service_changes), task_class)
        self._first[group] = First(view.now, head, task_class, slots)
        delays = self._delays.get(group)
        delay = delays.of_first(head.created) if delays else 0.0
        if delay > self.slack * _rounded_estimate(head):
            return (-head.priority, 0, head.created)
        return (-head.priority, 1, -(view.now - head.created) / max(cores, 1e-9))

    def placed(self, view: View, task: Task, row: int) -> None:
        """Count the delay of each group of which the first task is older and could have used the slot."""
        own = self.group(task)
        if len(self._delays) > GROUPS_MOST:
            self._delays = {group: each for group, each in self._delays.items() if group in self._first}
        self._first.pop(own, None)
        for group, first in list(self._first.items()):
            if first.now != view.now:
                del self._first[group]  # ranked in an earlier step: nothing of the group is asked about now
            elif (
                first.task.created < task.created
                and first.task.priority == task.priority
                and first.task_class.scalars.feasible[row]
            ):
                seconds = _estimate(task) / max(first.slots, 1.0)
                self._delays.setdefault(group, Delays()).add(task.created, seconds)


def _estimate(task: Task) -> float:
    return UNKNOWN_ESTIMATE if task.estimate is None else task.estimate


def _rounded_estimate(task: Task) -> float:
    """Down to a power of two, seconds: that of no task of the group is less."""
    return ldexp(0.5, frexp(_estimate(task))[1])


def _size(task_class: TaskClass) -> tuple[float, float]:
    """The cores of the nodes that may run the class, and slots for it, that services leave."""
    cluster, rows = task_class.cluster, task_class.waitable_rows
    cpu = cluster.columns["cpu"]
    cores = (cluster.allocatable[rows, cpu] - cluster.long_running[rows, cpu]).sum() / 1000
    return float(cores), float(task_class.service_slots[rows].sum())
