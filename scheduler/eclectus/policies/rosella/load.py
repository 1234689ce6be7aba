"""How busy the whole system is: arrivals of tasks against what the nodes can surely do."""

from __future__ import annotations

from eclectus.maths.arrivals import ArrivalRate
from eclectus.maths.slow_floor import SlowFloor
from eclectus.maths.tallies import Tallies
from eclectus.maths.window import load_ratio

LOST_SECONDS = 15.0  # a scheduler not heard of for so long is no more; as long as a Lease is held


class Load:
    """lambda_hat, mu_bar and their ratio. All rates in tasks a second."""

    def __init__(self, capacity: float | None) -> None:
        self._capacity = capacity
        self._own = ArrivalRate()
        self._others = Tallies(LOST_SECONDS)
        self.floor = SlowFloor()  # of what all nodes together are believed to do
        self.count = 0  # tasks that have come to this scheduler: what it publishes to the others

    def arrived(self, now: float) -> None:
        """A task has come to this scheduler."""
        self.count += 1
        self._own.add(now)

    def hear(self, scheduler: str, count: int, now: float) -> None:
        """Another scheduler tells its count."""
        self._others.hear(scheduler, count, now)

    def arrivals(self, now: float) -> float:
        """Tasks of all schedulers."""
        return self._own.slow(now) + self._others.rate(now)

    def surge(self, now: float) -> float:
        """The same, quick to rise and slow to fall: what spare capacity is reckoned by."""
        return max(self._own.fast(now), self._own.slow(now)) + self._others.rate(now)

    @property
    def capacity(self) -> float:
        """mu_bar: what the operator has set, else the slow lower bound."""
        return self.floor.value if self._capacity is None else self._capacity

    def ratio(self, now: float) -> float:
        """alpha_hat."""
        return load_ratio(self.arrivals(now), self.capacity)
