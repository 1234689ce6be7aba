"""When the next task of each job becomes due, although nothing happens."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from math import inf

SPARE = 16  # void entries of the heap that are always allowed


class NextStarts:
    """One time for each job, seconds; those whose time has come are found without asking the others."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}  # by uid
        self._heap: list[tuple[float, str]] = []  # those of them, and void entries

    def clear(self) -> None:
        """Forget all jobs."""
        self._at.clear()
        self._heap.clear()

    def set(self, uid: str, at: float) -> None:
        """The next task of the job becomes due at this time; inf: none does."""
        if at == inf:
            self.drop(uid)
        elif self._at.get(uid) != at:
            self._at[uid] = at
            heappush(self._heap, (at, uid))
            if len(self._heap) > 2 * len(self._at) + SPARE:
                self._heap = [(each, of) for of, each in self._at.items()]
                heapify(self._heap)

    def drop(self, uid: str) -> None:
        """The job is gone, or has nothing more to start; no error if it was not known."""
        self._at.pop(uid, None)

    def take(self, now: float) -> list[str]:
        """The jobs whose time has come, which have none from then on."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, uid = heappop(self._heap)
            if self._at.get(uid) == at:
                del self._at[uid]
                found.append(uid)
        return found
