"""When policies are asked about which refused class: at once, later again, or not at all.

Relieve policies have one such schedule, and Orders that reserve nodes another.

A class is asked about when no node has room for its tasks, whether they are refused or wait for a busy node;
when tasks join it; and when a pod of it loses its nomination. While nothing helps it is asked about again
after a growing time, and when a disruption budget allows more.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf

from eclectus.model.reservation import ClassKey

RefusedKey = tuple[str, ClassKey]  # profile, class

FIRST_SECONDS = 1.0  # until a class for which nothing could be done is asked about again, doubled each time…
MOST_SECONDS = 30.0  # …up to this: the period of kube-scheduler's own rechecks


Due = tuple[float, int]
"""When a class is due, seconds, and its place among those that are due."""


class ReliefSchedule:
    """Due times of classes for whose tasks no node has room."""

    def __init__(self) -> None:
        self._due: dict[RefusedKey, Due] = {}
        self._heap: list[tuple[Due, RefusedKey]] = []  # those of them, and void entries
        self._serial = 0
        self._wait: dict[RefusedKey, float] = {}  # of classes that were asked about in vain, seconds

    def next_due(self) -> float:
        """When the first class is due, seconds; inf for never."""
        heap = self._heap
        while heap:
            due, key = heap[0]
            if self._due.get(key) == due:
                return due[0]
            heappop(heap)
        return inf

    def due_at(self, key: RefusedKey) -> float | None:
        """When a class is due, seconds, -inf for at once; None if it is not due before something changes."""
        due = self._due.get(key)
        return None if due is None else due[0]

    def add(self, key: RefusedKey) -> None:
        """The class is due."""
        self._set(key, -inf)

    def add_waiting(self, key: RefusedKey) -> None:
        """The class is due unless it was asked about in vain: tasks of it wait for busy nodes."""
        if key not in self._wait:
            self.add(key)

    def take_due(self, now: float) -> list[RefusedKey]:
        """Take out the classes that are due, in the order in which they were added."""
        taken: list[tuple[int, RefusedKey]] = []
        while self.next_due() <= now:
            (_, serial), key = heappop(self._heap)
            del self._due[key]
            taken.append((serial, key))
        taken.sort(key=_serial)
        return [key for _, key in taken]

    def helped(self, key: RefusedKey) -> None:
        """All refused tasks of the class are nominated now."""
        self._wait.pop(key, None)

    def ask_again(self, key: RefusedKey, now: float) -> None:
        """Nothing could be done for some tasks of the class."""
        wait = self._wait[key] = min(2 * self._wait.get(key, FIRST_SECONDS / 2), MOST_SECONDS)
        if key not in self._due:
            self._set(key, now + wait)

    def expedite(self, now: float) -> None:
        """Evictions may have become allowed: no class waits for longer than after its first refusal."""
        latest = now + FIRST_SECONDS
        self._due = {key: (min(at, latest), serial) for key, (at, serial) in self._due.items()}
        self._heap = [(due, key) for key, due in self._due.items()]
        heapify(self._heap)
        self._wait.clear()

    def discard(self, key: RefusedKey) -> None:
        """No task of the class is refused any more."""
        self._due.pop(key, None)
        self._wait.pop(key, None)

    def _set(self, key: RefusedKey, at: float) -> None:
        before = self._due.get(key)
        if before is None:
            self._serial += 1
            due = (at, self._serial)
        elif before[0] == at:
            return
        else:
            due = (at, before[1])
        self._due[key] = due
        heappush(self._heap, (due, key))


def _serial(taken: tuple[int, RefusedKey]) -> int:
    return taken[0]
