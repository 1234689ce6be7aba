"""Long jobs placed centrally in their partition, short ones behind probes: what Hawk and Eagle share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eclectus.cluster.changelog import Rows
from eclectus.feasibility.task_class import TaskClass
from eclectus.framework import Action, ReserveMany, View
from eclectus.model.objects import Task
from eclectus.policies.shared.backlog import Backlog
from eclectus.policies.shared.jobwise import Jobwise
from eclectus.policies.shared.partition import Partition
from eclectus.policies.shared.reservations import Distinct, Ratio


@dataclass(eq=False)
class Hybrid(Partition, Jobwise):
    """A long task joins the line of least estimated wait; short jobs are for the policy to probe for."""

    ratio: Ratio = 2.0
    distinct: Distinct = False

    def __post_init__(self) -> None:
        self.long = Backlog(self.is_long)

    def place_job(
        self, view: View, tasks: Sequence[Task], task_class: TaskClass, rows: Rows
    ) -> Iterator[Action]:
        """Long tasks one by one, short ones behind probes."""
        if self.is_long(tasks[0]):
            yield from self.long.join_least_wait(view, tasks, task_class, self.rows_for_long(view, rows))
        else:
            yield self.probe(view, tasks, rows)

    @abstractmethod
    def probe(self, view: View, tasks: Sequence[Task], rows: Rows) -> ReserveMany:
        """Probes for a short job that may run or wait on any of `rows`; there is at least one."""
