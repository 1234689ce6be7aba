"""Samples of a run of unknown length are kept in bounded memory: a series over time, a histogram of times.

The histogram has geometric buckets: quantiles are within 0.25 %; the sum, the count and the maximum are
exact. Two histograms can be merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import exp, log
from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")


class Series(Generic[T]):
    """Holds between `most` and 2 * `most` samples once the run is long enough.

    At 2 * `most` samples every other one is dropped and the interval doubles.
    """

    __slots__ = ("due", "every", "items", "most")

    def __init__(self, every: float, most: int) -> None:
        self.every = every
        self.most = most
        self.due = every  # time of the next sample
        self.items: list[T] = []

    def add(self, item: T) -> None:
        """Add the sample taken at `due`."""
        self.items.append(item)
        if len(self.items) == 2 * self.most:
            del self.items[::2]
            self.every *= 2
        self.due += self.every


RATIO = 1.005  # upper over lower bound of a bucket; the error of a quantile is at most half of that
_SCALE = 1.0 / log(RATIO)
ZERO_BUCKET = -(10**6)  # the bucket of times that are zero


class Histogram:
    """A growing sample of times, in seconds.

    New values are kept in a list and put into buckets by numpy in one go, which is far faster than one by
    one. A caller that adds without limit must call `aggregate` from time to time; readers need not.
    """

    __slots__ = ("_buckets", "_largest", "_new", "_total", "add")

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self._total = 0.0
        self._largest = 0.0
        self._new: list[float] = []
        self.add: Callable[[float], None] = self._new.append  # add one value

    def aggregate(self) -> None:
        """Move the values added since the last call into buckets."""
        if not self._new:
            return
        new = np.array(self._new)
        self._new.clear()
        is_positive = new > 1e-12
        buckets = np.full(len(new), ZERO_BUCKET)
        buckets[is_positive] = np.floor(np.log(new[is_positive]) * _SCALE)
        self._buckets.update(buckets.tolist())
        # One after the other, so that the sum does not depend on how many values are aggregated at a time.
        self._total = float(np.cumsum(np.concatenate(([self._total], new)))[-1])
        self._largest = max(self._largest, float(new.max()))

    @property
    def buckets(self) -> Counter[int]:
        """Bucket -> number of values."""
        self.aggregate()
        return self._buckets

    @property
    def total(self) -> float:
        """The exact sum in seconds."""
        self.aggregate()
        return self._total

    @property
    def largest(self) -> float:
        """The maximum in seconds; 0 if empty."""
        self.aggregate()
        return self._largest

    @property
    def count(self) -> int:
        """The number of values; O(buckets)."""
        return self.buckets.total()

    def merge(self, other: Histogram) -> None:
        """Add all values of another histogram."""
        self.aggregate()
        self._buckets.update(other.buckets)
        self._total += other.total
        self._largest = max(self._largest, other.largest)

    @property
    def mean(self) -> float:
        """The exact mean in seconds; 0 if empty."""
        return self.total / self.count if self.buckets else 0.0

    def quantile(self, share: float) -> float:
        """The quantile at `share` (0 to 1), in seconds; 0 if empty."""
        rank, seen = share * self.count, 0
        for bucket in sorted(self.buckets):
            seen += self.buckets[bucket]
            if seen >= rank:
                return min(bucket_middle(bucket), self.largest)
        return 0.0


def bucket_middle(bucket: int) -> float:
    """The time that represents a bucket, in seconds."""
    return 0.0 if bucket == ZERO_BUCKET else exp((bucket + 0.5) / _SCALE)
