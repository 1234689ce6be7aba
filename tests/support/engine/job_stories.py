"""Stories of jobs with tasks of several classes and more work than room: what Orders with groups are for."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from builders import make_task
from eclectus.framework import Order
from eclectus.model.events import Event, TaskSeen
from eclectus.policies.order.drf import DominantShare
from eclectus.policies.order.fifo import FifoOrder
from eclectus.policies.order.h_drf import HierarchicalShare
from eclectus.policies.order.sjf import ShortestJob
from eclectus.policies.order.srtf import LeastWorkLeft
from random_stories import Story

ORDERS: dict[str, Callable[[], Order]] = {
    "fifo": FifoOrder,
    "sjf": ShortestJob,
    "srtf": LeastWorkLeft,
    "drf": DominantShare,
    "drf by job": lambda: DominantShare(by="job"),
    "h-drf": lambda: HierarchicalShare(weights={"b": 2.0}),
    "drf by label": lambda: DominantShare(by="label", label="team", weights={"x": 2.0}),
}


class JobStory(Story):
    """Pods of twelve jobs, three namespaces and three teams, with priorities, estimates and paths."""

    def _create(self) -> list[Event]:
        return [self._create_one() for _ in range(self._random.randrange(1, 4))]

    def _create_one(self) -> Event:
        self._serial += 1
        choice = self._random.choice
        task = make_task(
            f"t{self._serial}",
            cpu=choice((1, 1, 2, 3)),
            created=self.now,
            priority=choice((0, 0, 0, 5)),
            job=choice((f"j{self._random.randrange(12)}", "")),
            labels=(("team", choice("xyz")),),
            workload=choice(("", "w")),
            estimate=choice((None, 1.0, 5.0, 9.0)),
            path=choice((None, 3.0, 30.0)),
            job_work=choice((None, 10.0, 50.0)),
        )
        task = self.tasks[task.uid] = replace(task, namespace=choice("abc"))
        return TaskSeen(task)
