"""How long class queues with data have waited beside unused room, and how many nodes were passed over."""

from collections.abc import Iterator
from heapq import heappop, heappush
from math import inf

import numpy as np

from eclectus.cluster.locality import Domain
from eclectus.feasibility.rules.rule import Mask
from eclectus.framework import ClassQueue, Reach, Waited

_Targets = list[tuple[float, int, ClassQueue]]  # a heap: when, serial of the entry


class DataClock:
    """Of a class with data: it runs while a node has room that stays unused, and counts nodes that get room.

    `waiting`: by domain, the queues that are to be asked about when a node there gets room; also such as are
    held no more. `refused`: rows with room that the Place policy has refused since a node has changed.
    `fits`, `cursors`: where the class fits, and the logs of usage and shape, as of the end of the last step.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.offers = 0
        self.new_offers = 0  # nodes that have got room in this step: they count from its end on
        self.waiting: dict[Domain, dict[ClassQueue, None]] = {}
        self.refused: set[int] = set()
        self.fits: Mask = np.zeros(0, dtype=bool)
        self.cursors = (-1, -1)
        self._runs_since: float | None = None  # None: it stands
        self._by_seconds: _Targets = []
        self._by_offers: _Targets = []
        self._serial = 0

    def advance(self, now: float) -> None:
        """It is this time, in seconds."""
        if self._runs_since is not None:
            self.seconds, self._runs_since = self.at(now), now

    @property
    def runs(self) -> bool:
        """Whether a node has room that stays unused."""
        return self._runs_since is not None

    def at(self, now: float) -> float:
        """What it says at this time, seconds."""
        return self.seconds if self._runs_since is None else self.seconds + now - self._runs_since

    def run(self, now: float, *, runs: bool) -> None:
        """Whether it runs from now on."""
        self._runs_since = now if runs else None

    def expect(self, queue: ClassQueue, seconds: float, offers: float) -> None:
        """A queue is to be asked about when the clock says so many seconds, or so many nodes."""
        for heap, at in ((self._by_seconds, seconds), (self._by_offers, offers)):
            if at < inf:
                self._serial += 1
                heappush(heap, (at, self._serial, queue))

    def take_due(self) -> Iterator[ClassQueue]:
        """Take the queues that are to be asked about; some may not be held any more."""
        while self._by_seconds and round(self._by_seconds[0][0] - self.seconds, 6) <= 0.0:
            yield heappop(self._by_seconds)[2]
        while self._by_offers and self._by_offers[0][0] <= self.offers:
            yield heappop(self._by_offers)[2]

    def next_due(self, now: float) -> float:
        """When the first queue is, if the clock runs on, seconds; inf for never."""
        if self._runs_since is None:
            return inf
        if self._by_offers and self._by_offers[0][0] <= self.offers:
            return now
        return now + self._by_seconds[0][0] - self.seconds if self._by_seconds else inf


class QueueClock:
    """The same of one class queue, since one of its tasks has started."""

    def __init__(self, clock: DataClock) -> None:
        self._clock = clock
        self._level = self._tasks = 0
        self.reach = Reach(0)  # as answered last, when it was held
        self._since, self._passed = clock.seconds, clock.offers

    def begin(self, waited: Waited) -> None:
        """A task has started, and this much counts on."""
        clock = self._clock
        self._level, self._tasks = waited.level, waited.tasks
        self._since = clock.seconds - waited.seconds
        self._passed = clock.offers + clock.new_offers - waited.offers

    def now(self, tasks: int) -> Waited:
        """What counts now, with so many tasks in the queue."""
        self._tasks = max(self._tasks, tasks)
        seconds = round(self._clock.seconds - self._since, 6)  # a sum of times must not miss its target
        return Waited(self._level, seconds, max(self._clock.offers - self._passed, 0), self._tasks)

    def expect(self, queue: ClassQueue, reach: Reach) -> None:
        """Its tasks may go so far, until so much counts: then the queue is to be asked about."""
        self.reach = reach
        self._clock.expect(queue, self._since + reach.seconds, self._passed + reach.offers)

    def seconds(self, now: float) -> float:
        """For how long its tasks have waited, seconds; between two steps too."""
        return self._clock.at(now) - self._since

    def widens_at(self, now: float) -> float:
        """When its tasks may go further if room stays unused, seconds; inf if that is not known."""
        return now + self.reach.seconds - self.seconds(now) if self._clock.runs else inf
