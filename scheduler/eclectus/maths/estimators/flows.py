"""Rates over time: of arrivals, and a low percentile of any quantity."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from math import ceil

# -- arrivals ------------------------------------------------------------------------------------

# Estimator of the arrival rate: tasks a second over the last S moments of arrival.
#
# Q. Wu, Z. Liu, "Rosella", 2020, the arrival estimator. With t_0 < t_1 < ... < t_S the last moments of
# arrival and c_1 .. c_S the number of tasks that arrived at each,
#
#     rate(now) = (S - 1) / S  *  (c_1 + ... + c_S) / max(t_S - t_0, now - t_1)
#
# Departures:
# - the factor (S - 1) / S makes the estimate unbiased: for Poisson arrivals (S - 1) / (t_S - t_0) has the
#   mean lambda, and the paper's S / (t_S - t_0) is too high by S / (S - 1). The relative error is about 1 /
#   sqrt(S).
# - the open interval counts. Once no task has arrived for longer than the oldest gap, the estimate falls as 1
#   / (now - t_1); the paper's never falls. At times other than arrivals it is therefore too low by about 1 /
#   (2 S).
# - tasks that arrive at one instant (a job, or a list of all pending pods) are one moment. What arrived at
#   t_0 does not count, so a burst is not an infinite rate. The error is 1 / sqrt(S) in moments, not in tasks.
#
# Two windows share one memory: a short one that follows changes, and a long one that is precise.


class ArrivalRate:
    """Keeps the newest moments of arrival, at most `slow` + 1 of them."""

    def __init__(self, fast: int = 100, slow: int = 1000) -> None:
        self._fast, self._slow = fast, slow
        self._times = array("d")
        self._counts = array("d")  # tasks that had arrived up to and including this moment
        self._next = 0  # where the next moment goes once the memory is full

    def add(self, now: float, count: int = 1) -> None:
        """`count` tasks arrive. `now` must not decrease from call to call."""
        times, counts = self._times, self._counts
        if times:
            newest = self._next - 1
            if times[newest] >= now:
                counts[newest] += count
                return
            count += counts[newest]  # type: ignore[assignment]
        if len(times) <= self._slow:
            times.append(now)
            counts.append(count)
        else:
            times[self._next], counts[self._next] = now, count
            self._next = (self._next + 1) % len(times)

    def fast(self, now: float) -> float:
        """Tasks a second over the short window; 0 with fewer than two gaps."""
        return self._rate(now, self._fast)

    def slow(self, now: float) -> float:
        """Tasks a second over the long window; 0 with fewer than two gaps."""
        return self._rate(now, self._slow)

    def _rate(self, now: float, window: int) -> float:
        gaps = min(window, len(self._times) - 1)
        if gaps < 2:
            return 0.0
        size = len(self._times)
        newest, first = self._next - 1, (self._next - 1 - gaps) % size
        second = (first + 1) % size
        tasks = self._counts[newest] - self._counts[first]
        seconds = max(self._times[newest] - self._times[first], now - self._times[second])
        return (gaps - 1) / gaps * tasks / seconds


# -- a low percentile ----------------------------------------------------------------------------

# A low percentile of a quantity over the last hour: a lower bound that single high values do not raise.
#
# Used for mu_bar, the guaranteed capacity in Q. Wu, Z. Liu, "Rosella", 2020:
# where the administrator has not set it, it is the 5th percentile over an hour of the sum of learned rates.
# The sum itself is not used, because one estimate that is too high would raise it at once.

PERIOD_SECONDS = 60.0
PERIODS = 60  # kept: one hour
PERCENTILE = 5.0


class LowPercentile:
    """One reading each period; values in between are not used.

    The first reading is due after one period, since before that the learned rates rest on few samples.
    """

    def __init__(self) -> None:
        self._readings: deque[float] = deque(maxlen=PERIODS)
        self._due: float | None = None
        self.value = 0.0  # 0 before the first reading

    def is_due(self, now: float) -> bool:
        """Whether a period has passed since the last reading, or since the first call."""
        if self._due is None:
            self._due = now + PERIOD_SECONDS
        return now >= self._due

    def add(self, quantity: float, now: float) -> None:
        """Add a reading."""
        self._readings.append(quantity)
        self._due = now + PERIOD_SECONDS
        self.value = _percentile(sorted(self._readings), PERCENTILE)


def _percentile(ascending: Sequence[float], percent: float) -> float:
    """Interpolated as by numpy.percentile, whose first call imports numpy.ma: 60 ms within a step."""
    at, part = divmod(percent / 100.0 * (len(ascending) - 1), 1.0)
    low, high = ascending[int(at)], ascending[ceil(at + part)]
    return low + part * (high - low)
