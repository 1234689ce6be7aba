"""The load of all nodes, and Rosella's formulas that follow from it: window, cut-off, silence.

Q. Wu, Z. Liu, "Rosella", 2020, the performance learner, with a cap and corrections. With n nodes, lambda the
arrival rate of tasks and mu_bar the guaranteed capacity of all nodes together:

    alpha  = lambda / mu_bar, clamped to .05 .. .98          load
    eps    = .3 (1 - alpha)                                  target relative error
    L      = min(cap, ceil(c1 ln(n) (1 + C^2) / eps^2))      samples; C: coefficient of variation of times
    mu*    = c0 (mu_bar - lambda) / n                        slower nodes count as dead, tasks/s
    T_cut  = (1 + e_cut) L / mu*                             time in which a node of speed mu* ends L tasks
    e_cut  = max(eps, (v + sqrt(v^2 + 4 v)) / 2),   v = 2 x ln(n) / L

mu* is also the rate at which an idle node is sent probes, so T_cut is the time in which it should have
ended L of them. Not using any node slower than mu* costs at most the share c0 of the spare capacity. The
margin e_cut solves e^2 / (1 + e) = v: by Chernoff's bound an idle but healthy node, whose probes arrive at
random, is then cut off with probability at most n^-x. With the paper's margin, eps alone, a third of them
would be cut off at 90 % load once L is capped; without a cap L takes weeks to fill (docs/rosella.md,
departures).
"""

from array import array
from collections import deque
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from eclectus.maths.numbers import Floats

MIN_LOAD, MAX_LOAD = 0.05, 0.98
LENGTH_FACTOR = 2.0  # c1: each of n healthy idle nodes is cut off with probability of about n^(-c1/2)
MIN_LENGTH = 8
MIN_NODES = 20  # counted at least: for fewer nodes n^-x would not be a small probability


def load_ratio(arrivals: float, capacity: float) -> float:
    """alpha, from rates in tasks/s. An unknown capacity (0) counts as full load, to be cautious."""
    return min(max(arrivals / capacity if capacity > 0 else MAX_LOAD, MIN_LOAD), MAX_LOAD)


def error_aimed(load: float) -> float:
    """eps, the target relative error of rates."""
    return 0.3 * (1.0 - load)


def window_length(nodes: int, error: float, variation: float, *, most: int) -> int:
    """L, from MIN_LENGTH to `most`; `most` takes precedence. `variation` is C^2."""
    wanted = LENGTH_FACTOR * log(max(nodes, 2)) * (1.0 + variation) / error**2
    return min(most, max(MIN_LENGTH, ceil(min(wanted, float(most)))))


def cut_off_rate(capacity: float, load: float, nodes: int, share: float) -> float:
    """mu*, in the unit of the capacity; above 0, because the load is clamped. `share` is c0."""
    return share * capacity * (1.0 - load) / max(nodes, 1)


def cut_margin(samples: Floats, nodes: int, certainty: float, error: float) -> Floats:
    """e_cut for windows of these numbers of samples; inf for 0. `certainty` is x, `error` eps."""
    with np.errstate(divide="ignore"):
        v = 2.0 * unlikelihood(nodes, certainty) / samples
    return np.maximum(error, (v + np.sqrt(v * v + 4.0 * v)) / 2.0)


def unlikelihood(nodes: int, certainty: float) -> float:
    """x ln(n): minus the logarithm of the probability n^-x of judging a healthy node wrongly."""
    return certainty * log(max(nodes, MIN_NODES))


# An upper bound of a node's speed from tasks that run there and have not ended.
#
# Q. Wu, Z. Liu, "Rosella", 2020, count a worker as dead when its last L tasks took longer than T_cut
# (maths/load.py), which requires benchmarks that arrive all the time. Here a node may run nothing for
# hours, so only time in which a task was running is evidence. A task that still runs is not a sample, since
# its time is censored, but it bounds the speed from above for any distribution of sizes: by Markov's
# inequality a task takes y times its mean with probability at most 1 / y. If j tasks have each run at least
# y_(j) times their expected time since a task last ended on the node, a node of g times the learned speed
# would show this with probability at most (1 / (g y_(j)))^j. This is at least n^-x for all speeds up to
#
#     g = min over j of  n^(x / j) / y_(j),    y_(1) >= y_(2) >= ...         at most 1
#
# One hung task lowers g little, however old it is; all slots without an end lower it soon. With 30 nodes, x =
# 2 and four slots, g < 1 after 5.5 mean times, and then it falls in proportion to one over the time.
#
# A node counts as dead when g times its speed is below the cut-off mu* (maths/load.py).

Rows = NDArray[np.intp]


def speed_share(rows: Rows, overruns: Floats, nodes: int, unlikelihood: float) -> Floats:
    """g of each of `nodes` rows, shape [nodes].

    `rows` and `overruns`, shape [tasks]: of each running task the row, and the time since a task last ended
    there (or since its own start, if later) as a multiple of its expected time. `unlikelihood` is x ln(n).
    """
    share = np.ones(nodes)
    late = overruns > 1.0  # others give no bound
    if not late.any():
        return share
    rows, overruns = rows[late], overruns[late]
    order = np.lexsort((-overruns, rows))
    rows, overruns = rows[order], overruns[order]
    begins = np.flatnonzero(np.diff(rows, prepend=-1))
    rank = np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows))) + 1
    np.minimum.at(share, rows, np.exp(unlikelihood / rank) / overruns)
    return share


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
        self._fast = fast
        self._slow = slow
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
        # Interpolated as by numpy.percentile, whose first call imports numpy.ma: 60 ms within a step.
        ascending = sorted(self._readings)
        at, part = divmod(PERCENTILE / 100.0 * (len(ascending) - 1), 1.0)
        low, high = ascending[int(at)], ascending[ceil(at + part)]
        self.value = low + part * (high - low)
