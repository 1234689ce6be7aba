"""What several Place policies share: settings, and base classes for those that place by a cost or by jobs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal

from eclectus.framework import (
    Action,
    Bind,
    Floats,
    Place,
    PlaceTraits,
    Ranking,
    Rows,
    Setting,
    Spec,
    Task,
    TaskClass,
    Unschedulable,
    View,
    Weigh,
)

Queue = Annotated[
    Literal["central", "lines"],
    Setting(
        "where a task waits: in one central queue until a node has room, or in the node queue (line) of a "
        "node chosen on arrival",
        why="a central queue never leaves a node idle while tasks wait that fit there; the papers analyse "
        "node queues",
    ),
]
TRAITS_BY_QUEUE = {"central": PlaceTraits(), "lines": PlaceTraits(joins_node_queues=True)}
Ratio = Annotated[
    float,
    Setting(
        "reservations for each task of a job",
        why="2 in all published simulations; more gains little",
        least=1,
        most=100,
    ),
]
Distinct = Annotated[
    bool,
    Setting(
        "draw different nodes for the reservations of a job",
        why="Sparrow's daemon draws different nodes; the published simulators draw with replacement",
    ),
]


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
            task_class = view.task_class(tasks[0])
            rows = task_class.waitable_rows
            if len(rows):
                yield from self.place_job(view, tasks, task_class, rows)
            else:
                yield from (Unschedulable(task) for task in tasks)

    @abstractmethod
    def place_job(
        self, view: View, tasks: Sequence[Task], task_class: TaskClass, rows: Rows
    ) -> Iterator[Action]:
        """Place tasks of one class. `rows`, never empty: nodes that may run them, now or later."""


def group_by_job(pending: Iterable[Task]) -> Iterator[tuple[Task, ...]]:
    """The pending tasks by job and class, in the order of the first task of each."""
    found: dict[tuple[str, Spec, str], list[Task]] = {}
    for task in pending:
        found.setdefault((task.job or task.uid, task.spec, task.workload), []).append(task)
    for tasks in found.values():
        yield tuple(tasks)
