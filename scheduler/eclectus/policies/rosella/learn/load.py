"""The load of the whole system: arrival rate of tasks over the capacity of all nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.estimators.flows import ArrivalRate, LowPercentile
from eclectus.maths.products import sum_of_products
from eclectus.maths.window import load_ratio
from eclectus.policies.rosella.learn.namespace import Namespace


class Load:
    """Estimates of lambda, mu_bar and alpha. All rates in tasks a second."""

    def __init__(self, capacity: float | None) -> None:
        self._capacity = capacity
        self._arrivals = ArrivalRate()
        self.measured_capacity = LowPercentile()  # by effective rates
        self.count = 0  # tasks that have arrived, for any scheduler

    def arrived(self, now: float) -> None:
        """A task has arrived."""
        self.count += 1
        self._arrivals.add(now)

    def measure_capacity(
        self, namespaces: Sequence[Namespace], rows: NDArray[np.intp], slots: NDArray[np.int64], now: float
    ) -> None:
        """Add a reading: the sum of effective speeds times slots, over the mean size of recent tasks.

        Speeds and sizes of each namespace count in proportion to its recent tasks. Nothing before the first.
        """
        known = [(space, recent) for space in namespaces if (recent := float(space.rates.recent.sum())) > 0]
        if not known:
            return
        total, speed, size = sum(recent for _, recent in known), 0.0, 0.0
        for space, recent in known:
            effective = space.rates.matrix.factor[rows] * space.shares()[rows]
            speed += recent / total * float(sum_of_products(effective, slots))
            size += recent / total * space.rates.mean_size()
        self.measured_capacity.add(speed / size, now)

    def arrivals(self, now: float) -> float:
        """lambda: the arrival rate of tasks of all schedulers."""
        return self._arrivals.slow(now)

    def arrivals_upper(self, now: float) -> float:
        """An upper estimate of the arrival rate: it rises fast and falls slowly. For the spare capacity."""
        return max(self._arrivals.fast(now), self._arrivals.slow(now))

    @property
    def capacity(self) -> float:
        """mu_bar: the setting, or else the measured lower bound."""
        return self.measured_capacity.value if self._capacity is None else self._capacity

    def ratio(self, now: float) -> float:
        """alpha, clamped."""
        return load_ratio(self.arrivals(now), self.capacity)
