"""The backoff queue: pods whose last attempt failed for a reason that no cluster event resolves.

Each failure of a pod doubles its wait, from 1 s to 10 s, as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from math import inf

from eclectus.model.objects import Task

FIRST_SECONDS = 1.0  # podInitialBackoffSeconds of kube-scheduler
MOST_SECONDS = 10.0  # podMaxBackoffSeconds of kube-scheduler
DOUBLINGS_MOST = 8  # keeps the power of two finite


def wait_seconds(failures: int) -> float:
    """How long to wait after so many failures in succession, at least one."""
    return min(FIRST_SECONDS * 2.0 ** min(failures - 1, DOUBLINGS_MOST), MOST_SECONDS)


class Backoff:
    """Pods by the time at which they may be tried again."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []  # with void entries: valid are those that `waiting` has
        self._waiting: dict[str, tuple[float, Task]] = {}
        self.waiting: Mapping[str, tuple[float, Task]] = self._waiting  # uid -> time, task
        self._failures: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, uid: str) -> bool:
        return uid in self._waiting

    def add(self, task: Task, now: float) -> None:
        """An attempt to place the pod has failed."""
        failures = self._failures[task.uid] = self._failures.get(task.uid, 0) + 1
        when = now + wait_seconds(failures)
        self._waiting[task.uid] = (when, task)
        heappush(self._heap, (when, task.uid))

    def discard(self, uid: str) -> None:
        """Take the pod out of the queue, if it is there; its failures stay counted until `forget`."""
        self._waiting.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The pod is bound or gone."""
        if self._failures.pop(uid, None) is not None:  # a pod that never failed is not in the queue
            self._waiting.pop(uid, None)

    def replace(self, task: Task) -> None:
        """The pod has changed while it waits here."""
        when, _ = self._waiting[task.uid]
        self._waiting[task.uid] = (when, task)

    def failures(self, uid: str) -> int:
        """How many attempts to place the pod have failed."""
        return self._failures.get(uid, 0)

    def next_due(self) -> float:
        """When the next pod may be tried, seconds; inf for never."""
        while self._heap:
            when, uid = self._heap[0]
            if uid in self._waiting and self._waiting[uid][0] == when:
                return when
            heappop(self._heap)
        return inf

    def take_due(self, now: float) -> list[Task]:
        """Take out the pods that may be tried now, in order of their times."""
        due: list[Task] = []
        while self._heap and self.next_due() <= now:
            _, uid = heappop(self._heap)
            due.append(self._waiting.pop(uid)[1])
        return due
