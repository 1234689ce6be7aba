"""Times in buckets of equal ratio: quantiles within a quarter of a per cent, memory that does not grow.

The sum, the count and the extremes are exact. Histograms of equal buckets add up.
"""

from __future__ import annotations

from collections import defaultdict
from math import exp, floor, log

RATIO = 1.005  # of a bucket's ends: a quantile is off by half of it at most
_SCALE = 1.0 / log(RATIO)
ZERO = -(10**6)  # the bucket of times that are nothing at all


class Histogram:
    """A growing sample of times, in seconds."""

    __slots__ = ("buckets", "largest", "total")

    def __init__(self) -> None:
        self.buckets: dict[int, int] = defaultdict(int)
        self.total, self.largest = 0.0, 0.0

    @property
    def count(self) -> int:
        """How many there are; O(buckets)."""
        return sum(self.buckets.values())

    def add(self, seconds: float) -> None:
        """One more."""
        self.buckets[floor(log(seconds) * _SCALE) if seconds > 1e-12 else ZERO] += 1
        self.total += seconds
        if seconds > self.largest:
            self.largest = seconds

    def join(self, other: Histogram) -> None:
        """Take in another sample."""
        for bucket, count in other.buckets.items():
            self.buckets[bucket] += count
        self.total += other.total
        self.largest = max(self.largest, other.largest)

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


def middle(bucket: int) -> float:
    """The time that stands for a bucket, seconds."""
    return 0.0 if bucket == ZERO else exp((bucket + 0.5) / _SCALE)
