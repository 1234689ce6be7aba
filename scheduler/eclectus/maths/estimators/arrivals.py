"""How many tasks arrive a second, over the last S moments at which any arrived.

Q. Wu, Z. Liu, "Rosella", 2020, the arrival estimator; rosella.md 3. With t_0 < t_1 < ... < t_S the last
moments of arrival and c_1 .. c_S how many tasks came at each,

    rate(now) = (S - 1) / S  *  (c_1 + ... + c_S) / max(t_S - t_0, now - t_1)

- For Poisson arrivals (S - 1) / (t_S - t_0) has the mean lambda; the paper's S / (t_S - t_0) is too high
  by S / (S - 1). Its relative error is about 1 / sqrt(S).
- The open interval counts: once nothing has come for longer than the oldest gap, the estimate falls as
  1 / (now - t_1); the paper's stands for ever. Asked at any other time than an arrival it is therefore low
  by about 1 / (2 S).
- Many tasks at one instant, a job or a list of all that waits, are one moment: what t_0 brought is not
  counted, so a burst is no infinite rate, and the error is 1 / sqrt(S) in moments, not in tasks.

Two windows share one memory: a fast one to follow change, a slow one to be exact.
"""

from __future__ import annotations

from array import array


class ArrivalRate:
    """The newest moments of arrival, at most `slow` + 1 of them."""

    def __init__(self, fast: int = 100, slow: int = 1000) -> None:
        self._fast, self._slow = fast, slow
        self._times = array("d")
        self._counts = array("d")  # tasks that had come up to and with this moment
        self._next = 0  # where the next moment goes once the memory is full

    def add(self, now: float, count: int = 1) -> None:
        """So many tasks arrive; `now` never falls."""
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
        """Tasks a second over the short window; 0 until two gaps are known."""
        return self._rate(now, self._fast)

    def slow(self, now: float) -> float:
        """Tasks a second over the long window; 0 until two gaps are known."""
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
