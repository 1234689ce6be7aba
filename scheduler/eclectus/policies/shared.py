"""What several policies share: settings, base classes, and the long and short tasks of Hawk and Eagle."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum, inf
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from typing_extensions import override

from eclectus.framework import (
    Action,
    Bind,
    Enqueue,
    Floats,
    Line,
    Place,
    PlaceTraits,
    Ranking,
    Refused,
    RefusedGang,
    ReliefAction,
    Relieve,
    RelieveTraits,
    Reservation,
    ReserveMany,
    Rows,
    Setting,
    Spec,
    Task,
    TaskClass,
    Unschedulable,
    View,
    Weigh,
    setting,
)
from eclectus.maths import numbers
from eclectus.maths.sampling import draw_rows

Queue = Literal["central", "lines"]
QUEUE = Setting(
    "where a task waits: in one central queue until a node has room, or in the node queue (line) of a "
    "node chosen on arrival",
    why="a central queue never leaves a node idle while tasks wait that fit there; the papers analyse "
    "node queues",
)
Tasks = Sequence[Task]
TRAITS_BY_QUEUE = {"central": PlaceTraits(), "lines": PlaceTraits(joins_node_queues=True)}
RATIO = Setting(
    "reservations for each task of a job",
    why="2 in all published simulations; more gains little",
    least=1,
    most=100,
)
DISTINCT = Setting(
    "draw different nodes for the reservations of a job",
    why="Sparrow's daemon draws different nodes; the published simulators draw with replacement",
)


class ByCost(Place):
    """Place each task on the node of least cost; of equal costs on the lowest row."""

    def choose(self, view: View, ranking: Ranking) -> tuple[int, float] | None:
        """Row and cost of the node to take; None if every cost is inf."""
        return ranking.best()

    @property
    def weigh(self) -> Weigh | None:
        """How preferences weigh in a cost that is without them; None where they have no effect."""
        return None

    @abstractmethod
    def cost(self, task_class: TaskClass, rows: Rows) -> Floats:
        """Cost of a task of the class on these rows, shape [len(rows)]; inf where there is no room."""

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        """Place each task on the cheapest node; unschedulable if no node has room."""
        for task in pending:
            task_class = view.task_class(task)
            best = None
            if task_class.fits_now_count:
                best = self.choose(view, view.ranking(task_class, self.cost, self, weigh=self.weigh))
            yield Unschedulable(task) if best is None else Bind(task, best[0])


class ByJob(Place):
    """Place one job after the other; tasks that may run on no node are unschedulable."""

    traits = PlaceTraits(joins_node_queues=True, takes_all_pending=True)

    def place(self, view: View, pending: Iterator[Task]) -> Iterator[Action]:
        """Group the pending tasks by job, and place each group."""
        for tasks in group_by_job(pending):
            answered = 0
            while answered < len(tasks):
                answered += yield from self._place_first(view, tasks[answered:])

    def _place_first(self, view: View, tasks: Tasks) -> Generator[Action, None, int]:
        """Answer the first tasks of a job, and return how many: all, unless these fill a limit of a pool.

        Then fewer nodes are left for the others.
        """
        task_class = view.task_class(tasks[0])
        rows = task_class.waitable_rows
        if not len(rows):
            yield from (Unschedulable(task) for task in tasks)
            return len(tasks)
        for answered, action in enumerate(self.place_job(view, tasks, task_class, rows), 1):
            yield action
            may_close = isinstance(action, Enqueue) and tasks[0].spec.quotas
            if may_close and not view.task_class(tasks[0]).waitable(rows).all():
                return answered
        return len(tasks)

    @abstractmethod
    def place_job(self, view: View, tasks: Tasks, task_class: TaskClass, rows: Rows) -> Iterator[Action]:
        """Place tasks of one class: each by itself, in their order, or all at once.

        `rows`, never empty: nodes that may run them, now or later.
        """


def group_by_job(pending: Iterable[Task]) -> Iterator[tuple[Task, ...]]:
    """The pending tasks by job and class, in the order of the first task of each."""
    found: dict[tuple[str, Spec, str], list[Task]] = {}
    for task in pending:
        found.setdefault((task.job or task.uid, task.spec, task.workload), []).append(task)
    for tasks in found.values():
        yield tuple(tasks)


# What Hawk, Eagle and the policies beside them share: long and short tasks, and the work at each node.


@dataclass(eq=False)
class CutOff:
    """Which tasks are long."""

    cut_off: float = setting(
        90.0,
        "a task is long if its estimate is greater than this; a task without an estimate is short",
        unit="s",
        why="published cut-offs are 77, 91, 273 and 1130 s, by trace; set the same for place and line",
        least=0,
    )

    def is_long(self, task: Task) -> bool:
        """Whether the task is long."""
        return task.estimate is not None and task.estimate > self.cut_off


@dataclass(eq=False)
class Partition(CutOff):
    """Long tasks may use the last `long_share` of the nodes, in the order of their rows."""

    long_share: float = setting(
        0.9,
        "share of the nodes that long tasks may use; the other nodes run short tasks only",
        why="published with 0.83 to 0.98, by trace; set the same for place and line",
        least=0.01,
        most=1,
    )

    def rows_for_long(self, view: View, rows: Rows) -> Rows:
        """Those of `rows` that long tasks may use; all of `rows` if there is none."""
        chosen = rows[rows >= self._boundary(view)]
        return chosen if len(chosen) else rows

    def rows_for_short_alone(self, view: View, rows: Rows) -> Rows:
        """Those of `rows` that run short tasks only."""
        return rows[rows < self._boundary(view)]

    def _boundary(self, view: View) -> int:
        """The first row that long tasks may use."""
        present = np.flatnonzero(view.cluster.present)
        alone = int((1.0 - self.long_share) * len(present) + 0.5)
        return int(present[alone]) if alone < len(present) else len(view.cluster.present)


# Estimated work at each node: when its running tasks should end, and how long its node queue should take.
#
# A task without an estimate is taken to need the learned mean time of its workload on that node. Either way
# its slot is held for the turnaround beside (maths/turnaround.py). Long-running pods (services) never end and
# do not count; they reduce the number of slots instead.

LEAST_WAIT = 1e-9  # seconds, at a node without room: see Backlog.wait


class Backlog:
    """Seconds of work at each node; an update costs only the nodes that have changed.

    `counts`: which tasks count. Reservations that a job has on several nodes do not, since most of them will
    not be used; `reserved` has what is expected of them.
    """

    def __init__(self, counts: Callable[[Task], bool] = lambda task: True) -> None:
        self._counts = counts
        self._cursor = -1
        self._queued = self._tasks = np.zeros(0)
        self._ends = np.zeros((0, 1))  # by row: ends of running tasks, ascending, then -inf; seconds

    def refresh(self, view: View) -> None:
        """Bring the arrays up to date with the cluster."""
        usage, capacity = view.cluster.usage, view.cluster.capacity
        changed = usage.since(self._cursor) if len(self._tasks) == capacity else None
        self._cursor = usage.head
        if changed is None:
            self._queued, self._tasks = np.zeros((2, capacity))
            self._ends = np.full((capacity, 1), -inf)
            changed = np.flatnonzero(view.cluster.present).tolist()
        for row in changed:
            self._update(view, row)

    def any_at(self, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Whether a task that counts runs or waits at each of the rows."""
        return self._tasks[rows] > 0

    def wait(self, view: View, task_class: TaskClass, rows: Rows) -> Floats:
        """Seconds until a slot for the class should be free at each of the rows; 0 where one is.

        For one slot this follows from the estimates; with several slots, the work is divided evenly by all.
        A node whose tasks have run for longer than estimated has no work left by the estimates. It is still
        full, so its wait is LEAST_WAIT: less than that of any work, more than that of a node with room.
        """
        running = np.zeros(len(rows))
        busy = np.flatnonzero(self.any_at(rows))  # most nodes of a large cluster may be idle
        running[busy] = np.maximum(self._ends[rows[busy]] - view.now, 0.0).sum(axis=1)
        seconds = (running + self._queued[rows]) / np.maximum(task_class.service_slots[rows], 1.0)
        return np.where(task_class.fits_now[rows], 0.0, np.maximum(seconds, LEAST_WAIT))

    def reserved(self, view: View, rows: Rows) -> tuple[Floats, Floats]:
        """Tasks that reservations are expected to bring to each of the rows, and their work in seconds.

        The tasks of a job that have not started are divided by its reservations, so that each counts once
        over all nodes, however many reservations it has. Needs no `refresh`; it costs a pass over the queues.
        """
        tasks, seconds = np.zeros((2, len(rows)))
        for at, row in enumerate(rows.tolist()):
            for reservation in view.node_queues.get(row, ()):
                if not reservation.is_tentative and self._counts(reservation.head):
                    share = len(reservation.tasks) / len(reservation.rows)
                    tasks[at] += share
                    seconds[at] += share * expected_seconds(view, reservation.head, row)
        return tasks, seconds

    def join_least_wait(
        self, view: View, tasks: Tasks, task_class: TaskClass, rows: Rows
    ) -> Iterator[Action]:
        """Enqueue tasks of one class, each at the one of `rows` with the least wait at that moment."""
        self.refresh(view)
        waits = self.wait(view, task_class, rows)
        for task in tasks:
            at = int(waits.argmin())
            yield Enqueue(task, int(rows[at]))
            self.refresh(view)
            waits[at] = self.wait(view, view.task_class(task), rows[at : at + 1])[0]

    def _update(self, view: View, row: int) -> None:
        running = [
            (since, task)
            for task, since in view.placed.on_row(row)
            if not task.spec.long_running and self._counts(task)
        ]
        waiting = [
            reservation.head
            for reservation in view.node_queues.get(row, ())
            if reservation.is_tentative and self._counts(reservation.head)
        ]
        ends = sorted(since + expected_seconds(view, task, row) for since, task in running)
        missing = len(ends) - self._ends.shape[1]
        if missing > 0:
            self._ends = np.pad(self._ends, ((0, 0), (0, missing)), constant_values=-inf)
        self._ends[row] = -inf
        self._ends[row, : len(ends)] = ends
        # fsum: placed pods come in no fixed order, and the order of a sum must not decide a tie.
        self._queued[row] = fsum(expected_seconds(view, task, row) for task in waiting)
        self._tasks[row] = len(running) + len(waiting)


def expected_seconds(view: View, task: Task, row: int) -> float:
    """For how long the task holds its slot: by its estimate, else as learned on the node; inf at speed 0."""
    if task.estimate is not None:
        return task.estimate + view.learn.turnaround(task.workload)
    return numbers.divide(1.0, float(view.learn.speeds(task.workload).rate[row]))


def mean_seconds(task_class: TaskClass, rate: Floats, rows: Rows) -> float:
    """The mean run time of the class on these rows, each slot at work; inf without a slot."""
    slots = task_class.service_slots[rows]
    pace = float((slots * rate[rows]).sum())
    return float(slots.sum()) / pace if pace else inf


@dataclass(eq=False)
class Hybrid(Partition, ByJob):
    """Long tasks join the node queue of least estimated wait in the long partition."""

    ratio: float = setting(2.0, RATIO)
    distinct: bool = setting(False, DISTINCT)

    def __post_init__(self) -> None:
        self.long = Backlog(self.is_long)

    def place_job(self, view: View, tasks: Tasks, task_class: TaskClass, rows: Rows) -> Iterator[Action]:
        """Long tasks one by one; a short job by reservations."""
        if self.is_long(tasks[0]):
            yield from self.long.join_least_wait(view, tasks, task_class, self.rows_for_long(view, rows))
        else:
            yield self.reserve(view, tasks, rows)

    def draw(self, view: View, rows: Rows, count: int) -> tuple[int, ...]:
        """`count` random ones of `rows`; if there are no more than that, each equally often, up to one.

        So where constraints leave few nodes, none of them is left out.
        """
        return draw_rows(view.rng, rows, count, self.distinct or count >= len(rows))

    @abstractmethod
    def reserve(self, view: View, tasks: Sequence[Task], rows: Rows) -> ReserveMany:
        """The reservations of a short job. `rows`, never empty: nodes that may run it, now or later."""


# Base class of Line policies in which short tasks overtake each other within limits (Eagle, SoCC 2016).
#
# Of the reservations in a node queue the one that ranks first goes first. It may not overtake a reservation
# that was already overtaken by `slack` times its own estimate. A long task at the head of the queue goes
# before all others, and none overtakes.

Rank = tuple[float, ...]


@dataclass(eq=False)
class OvertakingLine(CutOff, Line):
    """Short tasks in the order of their ranks, with a limit on overtaking."""

    slack: float = setting(
        5.0,
        "how much work may overtake a job in a node queue, in multiples of the job's own estimate",
        why="as in the paper",
        least=0,
    )

    def __post_init__(self) -> None:
        self._overtaken: WeakKeyDictionary[Reservation, defaultdict[int, float]] = WeakKeyDictionary()

    @abstractmethod
    def rank(self, view: View, reservation: Reservation, remaining_seconds: float) -> Rank:
        """Rank of a reservation of short tasks, smallest first; of equal ones the first to come goes first.

        `remaining_seconds`: the estimates of its tasks that have not started.
        """

    def next(self, view: View, row: int, queue: Sequence[Reservation]) -> Reservation | None:
        """The one of least rank of those that may overtake all before them."""
        if self.is_long(queue[0].head):
            return queue[0]
        least: tuple[float, ...] = (inf,)
        slack, best = inf, 0
        for at, reservation in enumerate(queue):
            if self.is_long(reservation.head):
                continue
            seconds = expected_seconds(view, reservation.head, row)
            rank = self.rank(view, reservation, seconds * len(reservation.tasks))
            if rank < least and seconds <= slack:
                best, least = at, rank
            overtaken_by = self._overtaken[reservation][row] if reservation in self._overtaken else 0.0
            slack = min(slack, self.slack * seconds - overtaken_by)
        if view.task_class(queue[best].head).fits_beside_held(row):
            seconds = expected_seconds(view, queue[best].head, row)
            for overtaken in dict.fromkeys(queue[:best]):  # one that is queued twice is overtaken once
                self._overtaken.setdefault(overtaken, defaultdict(float))[row] += seconds
        return queue[best]


@dataclass(eq=False)
class Chain(Relieve):
    """`relieve: [reclaim, preemption]`: each is asked about what those before have made no room for."""

    policies: tuple[Relieve, ...]

    @property
    @override
    def traits(self) -> RelieveTraits:
        """What any of them may do."""
        return RelieveTraits(
            needs=frozenset(need for each in self.policies for need in each.traits.needs),
            evicts=any(each.traits.evicts for each in self.policies),
            reclaims=any(each.traits.reclaims for each in self.policies),
        )

    def relieve(self, view: View, refused: Refused) -> Iterator[ReliefAction]:
        """What the first answers, then what the next answers about the tasks that are not nominated yet."""
        for policy in self.policies:
            left = [task for task in refused.tasks if not view.placed.is_nominated(task.uid)]
            if left:
                yield from policy.relieve(view, Refused(refused.task_class, left))

    @override
    def next_at(self, view: View) -> float:
        """The first time of any of them: where nothing was done, all were asked."""
        return min(policy.next_at(view) for policy in self.policies)

    @override
    def relieve_gang(self, view: View, refused: RefusedGang) -> Iterator[ReliefAction]:
        """What the first answers that makes room for the gang."""
        for policy in self.policies:
            if not any(view.placed.is_nominated(task.uid) for task in refused.tasks):
                yield from policy.relieve_gang(view, refused)
