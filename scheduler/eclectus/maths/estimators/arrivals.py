"""Estimator of the arrival rate: tasks a second over the last S moments of arrival.

Q. Wu, Z. Liu, "Rosella", 2020, the arrival estimator. With t_0 < t_1 < ... < t_S the last moments of arrival
and c_1 .. c_S the number of tasks that arrived at each,

    rate(now) = (S - 1) / S  *  (c_1 + ... + c_S) / max(t_S - t_0, now - t_1)

Departures:
- the factor (S - 1) / S makes the estimate unbiased: for Poisson arrivals (S - 1) / (t_S - t_0) has the mean
  lambda, and the paper's S / (t_S - t_0) is too high by S / (S - 1). The relative error is about 1 / sqrt(S).
- the open interval counts. Once no task has arrived for longer than the oldest gap, the estimate falls as
  1 / (now - t_1); the paper's never falls. At times other than arrivals it is therefore too low by about
  1 / (2 S).
- tasks that arrive at one instant (a job, or a list of all pending pods) are one moment. What arrived at t_0
  does not count, so a burst is not an infinite rate. The error is 1 / sqrt(S) in moments, not in tasks.

Two windows share one memory: a short one that follows changes, and a long one that is precise.
"""

from __future__ import annotations

from array import array


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
