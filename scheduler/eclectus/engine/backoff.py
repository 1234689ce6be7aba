"""Pods that failed for a reason no cluster event explains wait, each time longer (1 s doubling to 10 s)."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

from eclectus.model.objects import Task

FIRST_SECONDS = 1.0  # podInitialBackoffSeconds of kube-scheduler
MOST_SECONDS = 10.0  # podMaxBackoffSeconds of kube-scheduler


class Backoff:
    """Pods by the time they may be tried again."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self.waiting: dict[str, tuple[float, Task]] = {}  # uid -> when, task; read it, do not write it
        self._failures: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.waiting)

    def __contains__(self, uid: str) -> bool:
        return uid in self.waiting

    def add(self, task: Task, now: float) -> None:
        """The pod has failed once more."""
        failures = self._failures[task.uid] = self._failures.get(task.uid, 0) + 1
        when = now + min(FIRST_SECONDS * 2.0 ** min(failures - 1, 8), MOST_SECONDS)
        self.waiting[task.uid] = (when, task)
        heappush(self._heap, (when, task.uid))

    def discard(self, uid: str) -> None:
        """The pod backs off no more; its failures stay counted until it is forgotten."""
        self.waiting.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The pod is placed or gone."""
        if self._failures.pop(uid, None) is not None:  # whoever has never failed does not wait
            self.waiting.pop(uid, None)

    def replace(self, task: Task) -> None:
        """The pod has changed while it backs off."""
        when, _ = self.waiting[task.uid]
        self.waiting[task.uid] = (when, task)

    def next_due(self) -> float:
        """When the next pod may be tried, seconds; inf for never."""
        while self._heap:
            when, uid = self._heap[0]
            if uid in self.waiting and self.waiting[uid][0] == when:
                return when
            heappop(self._heap)
        return inf

    def take_due(self, now: float) -> list[Task]:
        """Pods to be tried again now."""
        due: list[Task] = []
        while self._heap and self.next_due() <= now:
            _, uid = heappop(self._heap)
            due.append(self.waiting.pop(uid)[1])
        return due
