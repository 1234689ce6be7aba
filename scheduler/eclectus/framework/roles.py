"""The seam: what a policy may see, what it may answer, and the roles it may play.

A policy is asked, answers with actions, and never keeps a plan of its own: every action is in force
before the next is asked for, so a generator can look at the view again and see what it has done.
docs/seam.md walks every policy through these roles. The answers are in answers.py, a learner's words in
learning.py; all are to be had from here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import ClassVar, Protocol

from eclectus.framework.actions import Action
from eclectus.framework.view import View
from eclectus.model.objects import Task
from eclectus.model.reservation import Reservation

# -- what is seen ------------------------------------------------------------------------------


class ClassQueue(Protocol):
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


class PendingTasks(Iterator[Task], ABC):
    """Waiting tasks in the Order's order, each once a round."""

    __slots__ = ()

    @abstractmethod
    def one_per_queue(self) -> None:
        """From now on a lane's next task comes only when its task at hand has been answered.

        The iterator then ends with one task of each lane at hand, and goes on where some are answered: so
        a policy that compares all waiting tasks sees each kind once, however many wait.
        """

    @abstractmethod
    def skip(self, task: Task, most: int) -> int:
        """Leave out for this round up to `most` tasks that come next in the lane of this one, which waits.

        Returns how many there were. Its price does not grow with them.
        """


# -- roles -------------------------------------------------------------------------------------


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

    def queues_in_order(self, view: View, lanes: Iterable[ClassQueue]) -> Iterator[ClassQueue]:
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
    def place(self, view: View, turns: PendingTasks) -> Iterator[Action]:
        """Answer tasks with actions: one by one, or all at once, or one of each lane (`turns.one_each()`)."""


class Line(ABC):
    """In which order does a node serve its line?"""

    first_come: ClassVar[bool] = False
    """Whether `next` answers the first of every line. Then nobody asks it."""

    @abstractmethod
    def next(self, view: View, row: int, line: Sequence[Reservation]) -> Reservation | None:
        """The claim of the line to serve next, None for none yet; the line waits until its task fits."""

    def steal(self, view: View, row: int) -> Iterator[tuple[int, Reservation]]:
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
