"""When a pending pod gets a report of why it waits.

A pod that no node could ever run is reported at once. A pod that waits for room is reported after a grace
period: most such waits end sooner, and every report costs a write. Later reports are written only when the
message has changed, and ever less often.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heappop, heappush
from math import inf

GRACE_SECONDS = 1.0  # shorter waits are not reported and cost no write
REPEAT_SECONDS = 10.0  # the shortest time between two reports of one pod, doubled each time…
REPEAT_SECONDS_MOST = 300.0  # …up to this
DOUBLINGS_MOST = 16  # keeps the power of two finite, however long a pod waits


class ReportSchedule:
    """The due times of pending reports, and the last report of each pod."""

    def __init__(self) -> None:
        # First reports, uid -> due time, in order of due times. Most are cancelled, and taking the first one
        # out of a plain dict again and again would scan the entries deleted before it.
        self._first: OrderedDict[str, float] = OrderedDict()
        self._others: list[tuple[float, str]] = []  # a heap
        self._due_of: dict[str, float] = {}  # uid -> its valid due time in the heap; other entries are void
        self._reported: dict[str, tuple[str, float, int]] = {}  # uid -> last message, when, how many reports

    def next_due(self) -> float:
        """When the next report is due, seconds; inf for never."""
        first = next(iter(self._first.values()), inf)
        other = self._next_other() if self._others else inf
        return first if first < other else other

    def _next_other(self) -> float:
        others = self._others
        while others:
            due, uid = others[0]
            if self._due_of.get(uid) == due:
                return due
            heappop(others)
        return inf

    def add(self, uid: str, now: float, at_once: bool) -> None:
        """Schedule a report for a pending pod; no effect if one is scheduled already."""
        if uid in self._first or uid in self._due_of:
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
        self._due_of[uid] = due
        heappush(self._others, (due, uid))

    def expedite(self, uid: str, now: float) -> None:
        """No node could ever run this pod: if its first report is scheduled, it is due now."""
        if self._first.pop(uid, None) is not None:
            self._add_at(uid, now)

    def take_due(self, now: float, most: int) -> list[str]:
        """Take out pods whose reports are due now, in order of their due times; at most so many."""
        due: list[tuple[float, str]] = []
        while len(due) < most and next(iter(self._first.values()), inf) <= now:
            uid, at = self._first.popitem(last=False)
            due.append((at, uid))
        while len(due) < most and self._next_other() <= now:
            at, uid = heappop(self._others)
            del self._due_of[uid]
            due.append((at, uid))
        return [uid for _, uid in sorted(due)]

    def put_back(self, uids: Iterable[str], now: float) -> None:
        """These were taken out, and are still due."""
        for uid in uids:
            self._add_at(uid, now)

    def record(self, uid: str, message: str, on_the_pod: str, now: float) -> bool:
        """A report is made; whether it must be written: not if the pod has this message already."""
        last, _, times = self._reported.get(uid, (on_the_pod, 0.0, 0))
        self._reported[uid] = (message, now, times + 1)
        return message != last

    def last(self, uid: str) -> tuple[str, float, int] | None:
        """The last report of a pod that waits: its message, when it was made, how many there were."""
        return self._reported.get(uid)

    def cancel(self, uid: str) -> None:
        """The pod does not wait now; its last report stays known."""
        self._first.pop(uid, None)
        self._due_of.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The pod is placed or gone."""
        if self._first.pop(uid, None) is None:  # otherwise nothing has been reported yet
            self._due_of.pop(uid, None)
            self._reported.pop(uid, None)
