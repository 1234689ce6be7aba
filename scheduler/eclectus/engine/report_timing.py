"""Who must be told why it waits, and when.

A pod that fits nowhere at all is told at once. A pod that waits for room is told after a short grace,
because most such waits end sooner and every word costs a write. Later words come only when they
differ from the last, and ever more seldom.
"""

from __future__ import annotations

from collections import OrderedDict
from heapq import heappop, heappush
from math import inf

GRACE_SECONDS = 1.0  # waits shorter than this are nobody's concern and cost no write
REPEAT_SECONDS = 10.0  # the least time between two words to one pod, doubled each time…
REPEAT_SECONDS_MOST = 300.0  # …up to this
DOUBLINGS_MOST = 16  # no power of two grows without end, however long a pod waits


class ReportSchedule:
    """Due times by pod, and what was last said."""

    def __init__(self) -> None:
        # First words, uid -> due time: they fall due as they come to be owed. Most are never said, and a dict
        # whose first entry is taken out again and again would be searched through what it has lost.
        self._first: OrderedDict[str, float] = OrderedDict()
        self._others: list[tuple[float, str]] = []  # a heap
        self._counting: dict[str, float] = {}  # uid -> the due time there that counts; others are void
        self._reported: dict[str, tuple[str, float, int]] = {}  # uid -> words, when, how often

    def next_due(self) -> float:
        """When the next word is due, seconds; inf for never."""
        first = next(iter(self._first.values()), inf)
        other = self._next_other() if self._others else inf
        return first if first < other else other

    def _next_other(self) -> float:
        others = self._others
        while others:
            due, uid = others[0]
            if self._counting.get(uid) == due:
                return due
            heappop(others)
        return inf

    def add(self, uid: str, now: float, at_once: bool) -> None:
        """This pod waits and is owed a word; one that is owed a word already is owed no second."""
        if uid in self._first or uid in self._counting:
            return
        due = now if at_once else now + GRACE_SECONDS
        if uid in self._reported:
            _, when, times = self._reported[uid]
            gap = REPEAT_SECONDS * 2 ** min(times - 1, DOUBLINGS_MOST)
            self._add_at(uid, max(due, when + min(gap, REPEAT_SECONDS_MOST)))
        elif at_once:
            self._add_at(uid, due)
        else:
            self._first[uid] = due

    def _add_at(self, uid: str, due: float) -> None:
        self._counting[uid] = due
        heappush(self._others, (due, uid))

    def expedite(self, uid: str, now: float) -> None:
        """This pod fits nowhere at all: if it has never been told, tell it now."""
        if self._first.pop(uid, None) is not None:
            self._add_at(uid, now)

    def take_due(self, now: float) -> list[str]:
        """Pods that are to be told now, in order of their due times."""
        due = []
        while next(iter(self._first.values()), inf) <= now:
            uid, at = self._first.popitem(last=False)
            due.append((at, uid))
        while self._next_other() <= now:
            at, uid = heappop(self._others)
            del self._counting[uid]
            due.append((at, uid))
        return [uid for _, uid in sorted(due)]

    def record(self, uid: str, words: str, standing: str, now: float) -> bool:
        """Whether these words must be written: not if they stand on the pod already (`standing`)."""
        last, _, times = self._reported.get(uid, (standing, 0.0, 0))
        self._reported[uid] = (words, now, times + 1)
        return words != last

    def cancel(self, uid: str) -> None:
        """The pod waits no more for now; what was said stays known."""
        self._first.pop(uid, None)
        self._counting.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The pod is placed or gone."""
        if self._first.pop(uid, None) is None:  # else nothing has been said of it
            self._counting.pop(uid, None)
            self._reported.pop(uid, None)
