"""The seam: what a policy may see, what it may answer, and the roles it may play.

A policy is asked, answers with actions, and never keeps a plan of its own: every action is in force
before the next is asked for, so a generator can look at the view again and see what it has done.
docs/seam.md walks every policy through these roles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf
from random import Random
from typing import ClassVar, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eclectus.core.claim import Claim
from eclectus.core.cluster import Cluster
from eclectus.core.jobs import JobWork
from eclectus.core.known import Digest, KnownLoad, KnownNode, NodeState
from eclectus.core.model import Task
from eclectus.core.ranking import Cost, Ranking
from eclectus.core.usage import Usage
from eclectus.feasibility.classes import ClassTable, TaskClass

# -- answers -----------------------------------------------------------------------------------


class Why(Struct, frozen=True, gc=False):
    """Why a task is not placed. `of_class`: true of every task of its class until the cluster changes."""

    message: str = ""  # empty: the engine words it from the rules; must be given for one task alone
    of_class: bool = True


class Place(Struct, frozen=True, gc=False):
    """Bind the task to this node now. The node must be open to its class.

    `devices`: which of the node's devices a task takes that asks for some, whole ones first and that of
    its share last. Where none are named it takes the fullest that have room.
    """

    task: Task
    row: int
    devices: tuple[int, ...] = ()


class Plan(Struct, frozen=True, gc=False):
    """The task waits for this busy node, for this round only: the next round plans afresh."""

    task: Task
    row: int
    until: float = np.inf  # look again at this time even if nothing has happened, seconds


class Join(Struct, frozen=True, gc=False):
    """The task joins this node's line and stays there until the Line policy serves it.

    The node must have a slot that services leave to others: a line behind services never moves.
    """

    task: Task
    row: int


class Batch(Struct, frozen=True, gc=False):
    """Tasks of one kind wait together behind a reservation in the line of each of these nodes.

    A node that comes to a reservation starts the next of them (late binding); reservations left over
    when all have started are void. A row given twice gets two. `sticky`: a reservation stays until all
    tasks have started, instead of being used up by the first.
    """

    tasks: tuple[Task, ...]
    rows: tuple[int, ...]
    sticky: bool = False


class Refuse(Struct, frozen=True, gc=False):
    """The task has no place now."""

    task: Task
    why: Why = Why()


Action = Place | Plan | Join | Batch | Refuse


# -- what is seen ------------------------------------------------------------------------------


class Completion(Struct, frozen=True, gc=False):
    """A task ran to its end on a node: what a learner learns from."""

    row: int
    workload: str
    seconds: float  # container start to container end; no queueing, no image pull
    at: float  # when we saw that it had ended, seconds: no kubelet's clock can disturb it


@dataclass(frozen=True, slots=True)
class Speeds:
    """What is believed of every node for one workload.

    `rate`: tasks a second in one slot, shape [capacity]. `most`: no rate is above it. `epoch`
    changes when all rows may have changed at once; a single row changes only together with that
    node's usage.
    """

    rate: NDArray[np.float64]
    most: float
    epoch: int


class Learned(Struct, frozen=True, gc=False):
    """One learned cell, for people."""

    node: str
    workload: str
    rate: float  # tasks a second in one slot
    samples: int
    confidence: float = 0.0  # chance that the rate is within a third of the truth, 0..1
    state: NodeState = "live"  # of the node
    newest_at: float | None = None  # when the newest sample was taken, seconds


class Lane(Protocol):
    """Waiting tasks of one class and one group, in order."""

    @property
    def group(self) -> str:
        """What Order.group said of its tasks."""

    @property
    def head(self) -> Task | None:
        """The next task of the lane, None when it has no more for this round."""

    @property
    def head_key(self) -> tuple[float, ...]:
        """Order.key of the head."""


class Turns(Iterator[Task], ABC):
    """Waiting tasks in the Order's order, each once a round."""

    __slots__ = ()

    @abstractmethod
    def one_each(self) -> None:
        """From now on a lane's next task comes only when its task at hand has been answered.

        The iterator then ends with one task of each lane at hand, and goes on where some are answered: so
        a policy that compares all waiting tasks sees each kind once, however many wait.
        """

    @abstractmethod
    def pass_over(self, task: Task, most: int) -> int:
        """Leave out for this round up to `most` tasks that come next in the lane of this one, which waits.

        Returns how many there were. Its price does not grow with them.
        """


class View:
    """All that a policy may read: arrays over nodes, classes, speeds, the time and a seeded chance."""

    def __init__(self, cluster: Cluster, learn: Learn, rng: Random) -> None:
        self.cluster, self.learn, self.rng = cluster, learn, rng
        self.classes = ClassTable(cluster)
        self.now = 0.0
        self.lines: Mapping[int, Sequence[Claim]] = {}  # row -> its line, in order of joining
        self.planned_since: Mapping[
            str, float
        ] = {}  # uid -> since when it has been planned and not placed, seconds
        self.residents: Callable[[int], Iterable[tuple[Task, float]]] = (
            lambda row: ()
        )  # who holds room on a row, and since when, seconds
        self.usages: Mapping[int, Usage] = {}  # by the identity of the policy that asked for it
        self.work: JobWork | None = None
        self._rankings: dict[tuple[TaskClass, object], Ranking] = {}

    def task_class(self, task: Task) -> TaskClass:
        """The class of the task, up to date."""
        return self.classes.of(task.spec, task.workload)

    def speeds(self, task_class: TaskClass) -> Speeds:
        """What is believed of every node for the work of this class; all nodes are equal for a probe.

        Else no probe would go to a node believed dead, and nothing would ever bring that back.
        """
        found = self.learn.speeds(task_class.workload)
        return Speeds(np.ones_like(found.rate), 1.0, found.epoch) if task_class.spec.probe else found

    def usage(self, policy: Accounted) -> Usage:
        """What the groups of this policy's `counted_by` hold. Raises KeyError where it asks for none."""
        return self.usages[id(policy)]

    def work_left(self, task: Task) -> float:
        """Work of the task's job that has not begun, seconds, for policies that want it; inf if unknown."""
        return inf if self.work is None else self.work.left(task)

    def ranking(self, task_class: TaskClass, cost: Cost, owner: object) -> Ranking:
        """The nodes of a class by a policy's cost, kept up to date at the price of what changed."""
        key = (task_class, owner)
        ranking = self._rankings.get(key)
        if ranking is None:
            if len(self._rankings) >= self.classes.most:
                self._rankings.clear()
            ranking = self._rankings[key] = Ranking(task_class, cost)
        ranking.refresh(self.learn.speeds(task_class.workload).epoch)
        return ranking


# -- roles -------------------------------------------------------------------------------------


class Learn(ABC):
    """What does it teach us? One learner serves all profiles: the nodes are the same for all."""

    @abstractmethod
    def seat(self, row: int, node: str, capacity: int) -> None:
        """Node `node` now has row `row` of arrays of length `capacity`."""

    @abstractmethod
    def unseat(self, row: int) -> None:
        """The node of this row is gone."""

    @abstractmethod
    def observe(self, done: Completion) -> None:
        """A task has ended."""

    @abstractmethod
    def speeds(self, workload: str) -> Speeds:
        """What is believed of every node for this workload; cheap, asked with every decision."""

    @abstractmethod
    def learned(self) -> Iterator[Learned]:
        """Every cell with samples, for people."""

    # What a learner that needs to know of may override; none else is told.

    def arrived(self, workload: str, now: float) -> None:
        """A task that will end by itself has come to us, or another scheduler has bound it; once a task."""
        del workload, now

    def started(self, uid: str, row: int, workload: str, now: float) -> None:
        """A task that will end by itself has been seen running, whoever bound it; maybe many times over."""
        del uid, row, workload, now

    def left(self, uid: str, now: float) -> None:
        """A task has ended in any way, or is gone; it may never have been seen running."""
        del uid, now

    def known(self) -> Iterator[KnownNode]:
        """What is known of every node, as values that another process can recall."""
        return iter(())

    def known_load(self, now: float) -> KnownLoad | None:
        """How busy all nodes are; None where the learner does not say."""
        del now
        return None

    def digest(self, groups: NDArray[np.intp], now: float) -> Digest | None:
        """What is known in all, by group of nodes (by row, -1: none); None where the learner does not say."""
        del groups, now
        return None

    def recall(self, known: KnownNode) -> None:
        """What was known of a node once, here or elsewhere; the node has a row, `known.at` is not to come."""
        del known


class Accounted:
    """A policy for which the engine may keep accounts; what nobody asks for is not kept."""

    @property
    def wants_work(self) -> bool:
        """Whether `view.work_left` shall be kept."""
        return False

    @property
    def counted_by(self) -> Callable[[Task], str] | None:
        """The group by which `view.usage(self)` shall add up what residents hold; None for no account."""
        return None


class Order(Accounted, ABC):
    """Whose turn is it?"""

    def group(self, task: Task) -> str:
        """Tasks of different groups never share a lane: a pool, a job, or nothing."""
        del task
        return ""

    @abstractmethod
    def key(self, task: Task, serial: int) -> tuple[float, ...]:
        """Place of the task within its lane, smallest first. `serial` counts entries into the queue."""

    def turns(self, view: View, lanes: Iterable[Lane]) -> Iterator[Lane]:
        """Yield the lane whose head is next. When asked again, the answer to that head is in force.

        By default that of the smallest key, O(log lanes) a turn; of a single lane that is not even asked.
        """
        heads = [(lane.head_key, at, lane) for at, lane in enumerate(lanes) if lane.head is not None]
        heapify(heads)
        while heads:
            _, at, lane = heappop(heads)
            yield lane
            if lane.head is not None:
                heappush(heads, (lane.head_key, at, lane))


class Hold(ABC):
    """Is it worth waiting for a better place?"""

    @abstractmethod
    def until(self, view: View, task: Task) -> float:
        """The time before which the task should not be placed; view.now or earlier lets it go. Seconds."""


class PlacePolicy(Accounted, ABC):
    """Which of those places?"""

    @abstractmethod
    def place(self, view: View, turns: Turns) -> Iterator[Action]:
        """Answer tasks with actions: one by one, or all at once, or one of each lane (`turns.one_each()`)."""


class Line(ABC):
    """In which order does a node serve its line?"""

    first_come: ClassVar[bool] = False
    """Whether `next` answers the first of every line. Then nobody asks it."""

    @abstractmethod
    def next(self, view: View, row: int, line: Sequence[Claim]) -> Claim | None:
        """The claim of the line to serve next, None for none yet; the line waits until its task fits."""

    def steal(self, view: View, row: int) -> Iterator[tuple[int, Claim]]:
        """Nobody stands in the line of this row, which has just changed: claims to take over, and from where.

        Asked only of policies that say something else here.
        """
        return iter(())


class Relieve(ABC):
    """Who must make room, who deserves a copy, what must be probed?"""

    @abstractmethod
    def relieve(self, view: View, refused: Sequence[Task]) -> Iterator[Action]:
        """Act after placement, knowing what was refused this round; refused tasks may be answered again."""


@dataclass(frozen=True, slots=True)
class Profile:
    """One schedulerName and the policies that answer for its pods."""

    scheduler_name: str
    order: Order
    place: PlacePolicy
    line: Line
    hold: Hold | None = None
    relieve: tuple[Relieve, ...] = ()
