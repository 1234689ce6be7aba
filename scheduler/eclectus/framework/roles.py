"""The roles that policies play: what each is asked, and what it may answer.

A policy is asked, and answers with actions (actions.py). Each action is in force before the next one is
asked for: a policy that answers from a generator sees in the view (view.py) what it has done so far, and
keeps no plan of its own. docs/framework.md walks through every role.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import ClassVar, Protocol

from eclectus.feasibility.task_class import TaskClass
from eclectus.framework.actions import Action, ReliefAction
from eclectus.framework.traits import LineTraits, OrderTraits, PlaceTraits
from eclectus.framework.view import View
from eclectus.model.objects import Task
from eclectus.model.reservation import Reservation

# -- what a policy is given --------------------------------------------------------------------


class ClassQueue(Protocol):
    """Pending tasks of one profile, group and class, in the Order's order."""

    @property
    def group(self) -> str:
        """What `Order.group` answered for its tasks."""

    @property
    def head(self) -> Task | None:
        """The next task of the queue; None when it offers no more in this scheduling cycle."""

    @property
    def head_key(self) -> tuple[float, ...]:
        """`Order.key` of the head; raises IndexError where there is none."""


class PendingTasks(Iterator[Task], ABC):
    """The pending tasks of one profile in the Order's order, each offered once a scheduling cycle."""

    __slots__ = ()

    @abstractmethod
    def one_per_queue(self) -> None:
        """From now on, offer a queue's next task only when its last offered task has been answered.

        The iterator ends when every queue has one unanswered task, and continues after an answer: a policy
        that compares all pending tasks sees one of each class, however many wait.
        """

    @abstractmethod
    def skip(self, task: Task, most: int) -> int:
        """Do not offer the next `most` tasks in the queue of this pending task in this scheduling cycle.

        Returns how many were skipped. O(1).
        """


@dataclass(frozen=True, slots=True)
class Refused:
    """Tasks of one class for which no node has room: highest priority first, then in the Order's order.

    They were refused, or wait for a busy node. Tasks that are nominated already are not among them, nor those
    whose `preemptionPolicy` is Never.
    """

    task_class: TaskClass
    tasks: Sequence[Task]


# -- roles -------------------------------------------------------------------------------------


class Accounted:
    """A policy for which the engine keeps accounts on request."""

    @property
    def wants_work(self) -> bool:
        """Whether `view.work_left` is to be kept."""
        return False

    @property
    def counted_by(self) -> Callable[[Task], str] | None:
        """The group by which `view.shares(self)` adds up what placed pods hold; None for no account."""
        return None


class Order(Accounted, ABC):
    """Which pending task is next? Kubernetes' counterpart is QueueSort."""

    @property
    def traits(self) -> OrderTraits:
        """What it says of itself."""
        return OrderTraits()

    def group(self, task: Task) -> str:
        """A pool, a job, or nothing: tasks of different groups never share a class queue."""
        del task
        return ""

    @abstractmethod
    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Sort key of the task within its class queue, smallest first. `serial` counts queue entries."""

    def queues_in_order(self, view: View, queues: Iterable[ClassQueue]) -> Iterator[ClassQueue]:
        """Yield the queue whose head is next; the answer to the last head is in force by then.

        By default the queue with the smallest head key, O(log queues) each. Not called for a single queue.
        """
        heads = [(queue.head_key, at, queue) for at, queue in enumerate(queues) if queue.head is not None]
        heapify(heads)
        while heads:
            _, at, queue = heappop(heads)
            yield queue
            if queue.head is not None:
                heappush(heads, (queue.head_key, at, queue))


class PlacePolicy(Accounted, ABC):
    """Which node gets the task? Kubernetes' counterpart is Score."""

    @property
    def traits(self) -> PlaceTraits:
        """What it says of itself, with its settings."""
        return PlaceTraits()

    @abstractmethod
    def place(self, view: View, pending: PendingTasks) -> Iterator[Action]:
        """Answer pending tasks with actions: one by one, all at once, or one of each queue."""

    @property
    def learner_settings(self) -> Mapping[str, object]:
        """Settings that the policy requires of the learner, which all profiles share: field -> value."""
        return {}


class Line(ABC):
    """In which order does a node serve its node queue?"""

    @property
    def traits(self) -> LineTraits:
        """What it says of itself."""
        return LineTraits()

    @abstractmethod
    def next(self, view: View, row: int, queue: Sequence[Reservation]) -> Reservation | None:
        """The reservation to dispatch next, None for none yet. The queue waits until its task fits."""

    def steal(self, view: View, row: int) -> Iterator[tuple[int, Reservation]]:
        """Reservations to move to this node, each with the row it comes from.

        Asked when the node of this row has changed and has an empty node queue, and only of policies whose
        traits say that they steal.
        """
        return iter(())


class Relieve(ABC):
    """Which pods must make room for tasks that were refused? Kubernetes' counterpart is PostFilter."""

    evicts: ClassVar[bool] = False
    """Whether the policy may evict pods. The live scheduler then also watches PodDisruptionBudgets."""

    @abstractmethod
    def relieve(self, view: View, refused: Refused) -> Iterator[ReliefAction]:
        """Make room for some of the refused tasks, the first ones first.

        Asked when tasks of the class are refused, and again later while tasks are left.
        """


@dataclass(frozen=True, slots=True)
class Profile:
    """One schedulerName and the policies that decide for its pods."""

    scheduler_name: str
    order: Order
    place: PlacePolicy
    line: Line
    relieve: Relieve
