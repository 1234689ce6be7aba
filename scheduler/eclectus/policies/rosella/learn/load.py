"""How busy the whole system is: arrivals of tasks against what the nodes can surely do."""

from __future__ import annotations

from eclectus.maths.estimators.arrivals import ArrivalRate
from eclectus.maths.estimators.low_percentile import LowPercentile
from eclectus.maths.window import load_ratio


class Load:
    """lambda_hat, mu_bar and their ratio. All rates in tasks a second."""

    def __init__(self, capacity: float | None) -> None:
        self._capacity = capacity
        self._arrivals = ArrivalRate()
        self.measured_capacity = LowPercentile()  # of what all nodes together are believed to do
        self.count = 0  # tasks that have come to any scheduler

    def arrived(self, now: float) -> None:
        """A task has come."""
        self.count += 1
        self._arrivals.add(now)

    def arrivals(self, now: float) -> float:
        """Tasks of all schedulers."""
        return self._arrivals.slow(now)

    def arrivals_upper(self, now: float) -> float:
        """The same, quick to rise and slow to fall: what spare capacity is reckoned by."""
        return max(self._arrivals.fast(now), self._arrivals.slow(now))

    @property
    def capacity(self) -> float:
        """mu_bar: what the operator has set, else the slow lower bound."""
        return self.measured_capacity.value if self._capacity is None else self._capacity

    def ratio(self, now: float) -> float:
        """alpha_hat."""
        return load_ratio(self.arrivals(now), self.capacity)
