"""Times in buckets of equal ratio: quantiles within a quarter of a per cent, memory that does not grow.

The sum, the count and the extremes are exact. Histograms of equal buckets add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import exp, log

import numpy as np
from numpy.typing import NDArray

RATIO = 1.005  # of a bucket's ends: a quantile is off by half of it at most
_SCALE = 1.0 / log(RATIO)
ZERO = -(10**6)  # the bucket of times that are nothing at all


class Histogram:
    """A growing sample of times, in seconds.

    What is added stands in a list at first, which numpy sums up a thousand times as fast as one by one:
    whoever adds without end calls `sum_up` now and then; whoever reads need not.
    """

    __slots__ = ("_buckets", "_largest", "_new", "_total", "add")

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self._total, self._largest = 0.0, 0.0
        self._new: list[float] = []
        self.add: Callable[[float], None] = self._new.append  # one more

    def sum_up(self) -> None:
        """Take in what was added since the last time."""
        if not self._new:
            return
        new = np.array(self._new)
        self._new.clear()
        is_some = new > 1e-12
        places = np.full(len(new), ZERO)
        places[is_some] = np.floor(np.log(new[is_some]) * _SCALE)
        self._buckets.update(places.tolist())
        self._total = add_up(self._total, new)
        self._largest = max(self._largest, float(new.max()))

    @property
    def buckets(self) -> Counter[int]:
        """How many there are in each."""
        self.sum_up()
        return self._buckets

    @property
    def total(self) -> float:
        """The exact sum, seconds."""
        self.sum_up()
        return self._total

    @property
    def largest(self) -> float:
        """The longest, seconds; 0 of nothing."""
        self.sum_up()
        return self._largest

    @property
    def count(self) -> int:
        """How many there are; O(buckets)."""
        return self.buckets.total()

    def join(self, other: Histogram) -> None:
        """Take in another sample."""
        self.sum_up()
        self._buckets.update(other.buckets)
        self._total += other.total
        self._largest = max(self._largest, other.largest)

    @property
    def mean(self) -> float:
        """The exact mean, seconds; 0 of nothing."""
        return self.total / self.count if self.buckets else 0.0

    def quantile(self, share: float) -> float:
        """The time that `share` of the sample does not exceed, seconds; 0 of nothing."""
        rank, seen = share * self.count, 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= rank:
                return min(middle(bucket), self.largest)
        return 0.0


def add_up(total: float, more: NDArray[np.float64]) -> float:
    """One after the other, so that no sum depends on how many were added up at a time."""
    return float(np.cumsum(np.concatenate(([total], more)))[-1])


def middle(bucket: int) -> float:
    """The time that stands for a bucket, seconds."""
    return 0.0 if bucket == ZERO else exp((bucket + 0.5) / _SCALE)
