"""Who must be told why it waits, and when.

A pod that fits nowhere at all is told at once. A pod that waits for room is told after a short grace,
because most such waits end sooner and every word costs a write. Later words come only when they
differ from the last, and ever more seldom.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import inf

GRACE_SECONDS = 1.0  # waits shorter than this are nobody's concern and cost no write
REPEAT_SECONDS = 10.0  # the least time between two words to one pod, doubled each time…
REPEAT_SECONDS_MOST = 300.0  # …up to this
DOUBLINGS_MOST = 16  # no power of two grows without end, however long a pod waits


class Reports:
    """Due times by pod, and what was last said."""

    def __init__(self) -> None:
        self._first: deque[tuple[float, str]] = deque()  # first words: they fall due as they come to be owed
        self._others: list[tuple[float, str]] = []  # a heap
        self._waiting: dict[str, float] = {}  # uid -> the due time that counts; entries that differ are void
        self._said: dict[str, tuple[str, float, int]] = {}  # uid -> words, when, how often

    def next_due(self) -> float:
        """When the next word is due, seconds; inf for never."""
        first, others, waiting = self._first, self._others, self._waiting
        while first and waiting.get(first[0][1]) != first[0][0]:
            first.popleft()
        while others and waiting.get(others[0][1]) != others[0][0]:
            heappop(others)
        due = first[0][0] if first else inf
        return others[0][0] if others and others[0][0] < due else due

    def owe(self, uid: str, now: float, at_once: bool) -> None:
        """This pod waits and is owed a word; one that is owed a word already is owed no second."""
        if uid in self._waiting:
            return
        due = now if at_once else now + GRACE_SECONDS
        if uid in self._said:
            _, when, times = self._said[uid]
            gap = REPEAT_SECONDS * 2 ** min(times - 1, DOUBLINGS_MOST)
            due = max(due, when + min(gap, REPEAT_SECONDS_MOST))
        self._waiting[uid] = due
        if at_once or uid in self._said:
            heappush(self._others, (due, uid))
        else:
            self._first.append((due, uid))

    def hurry(self, uid: str, now: float) -> None:
        """This pod fits nowhere at all: if it has never been told, tell it now."""
        if uid in self._waiting and uid not in self._said:
            self._waiting[uid] = now
            heappush(self._others, (now, uid))

    def take_due(self, now: float) -> list[str]:
        """Pods that are to be told now, in order of their due times."""
        first, others = self._first, self._others
        due = []
        while self.next_due() <= now:
            entry = heappop(others) if others and (not first or others[0] < first[0]) else first.popleft()
            del self._waiting[entry[1]]
            due.append(entry)
        return [uid for _, uid in sorted(due)]

    def say(self, uid: str, words: str, standing: str, now: float) -> bool:
        """Whether these words must be written: not if they stand on the pod already (`standing`)."""
        last, _, times = self._said.get(uid, (standing, 0.0, 0))
        self._said[uid] = (words, now, times + 1)
        return words != last

    def cancel(self, uid: str) -> None:
        """The pod waits no more for now; what was said stays known."""
        self._waiting.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The pod is placed or gone."""
        self._waiting.pop(uid, None)
        self._said.pop(uid, None)
