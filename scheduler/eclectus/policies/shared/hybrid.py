"""Base class of Hawk and Eagle: long tasks are placed centrally, short jobs by reservations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eclectus.framework import Action, ReserveMany, Rows, Task, TaskClass, View
from eclectus.maths.sampling import draw_rows
from eclectus.policies.shared.backlog import Backlog
from eclectus.policies.shared.by_job import ByJob
from eclectus.policies.shared.partition import Partition
from eclectus.policies.shared.settings import Distinct, Ratio


@dataclass(eq=False)
class Hybrid(Partition, ByJob):
    """Long tasks join the node queue of least estimated wait in the long partition."""

    ratio: Ratio = 2.0
    distinct: Distinct = False

    def __post_init__(self) -> None:
        self.long = Backlog(self.is_long)

    def place_job(
        self, view: View, tasks: Sequence[Task], task_class: TaskClass, rows: Rows
    ) -> Iterator[Action]:
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
