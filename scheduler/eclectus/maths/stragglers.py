"""Stragglers: which of the running tasks of a stage are late, and whether a copy of one is worth its room.

M. Zaharia, A. Konwinski, A. Joseph, R. Katz, I. Stoica, "Improving MapReduce Performance in Heterogeneous
Environments" (LATE), OSDI 2008:

    rate = progress / age,   time left = (1 - progress) / rate

of the tasks whose rate is below a percentile of those of all, the one with the most time left gets a copy.
Percentiles are linear interpolations and comparisons strict; the paper says neither. What later systems made
of it, by their code: Hadoop 0.21 has standard deviations for percentiles; Spark compares run times with the
median of what has ended. G. Ananthanarayanan and others, "Reining in the Outliers in Map-Reduce Clusters
using Mantri", OSDI 2010, make a copy only if that saves time of machines too.

With learned speeds (maths/service_rates.py) no progress is needed: a task takes work / rate of its node.
"""

from bisect import bisect_left
from collections.abc import Sequence
from math import floor, inf, sqrt

LEAST_SLOTS = 5  # of a pool, with which it may have a copy at all


def time_left(progress: float, age: float) -> float:
    """How long a task needs more that has done so much of its work, 0..1, in `age` seconds; inf for none."""
    return inf if progress <= 0.0 else (1.0 - progress) / progress * age


def progress_of_phases(phases: Sequence[float], weights: Sequence[float]) -> float:
    """The progress, 0..1, of a task that works in phases, by what is done of each of them.

    As in LATE, where each of the three phases of a reduce counts a third; phases that take different times
    count by their weights, which are above 0, one for each. A part below 0 or above 1 counts as 0 or 1.
    """
    done = sum(min(max(part, 0.0), 1.0) * weight for part, weight in zip(phases, weights, strict=True))
    return min(done / sum(weights), 1.0)


def percentile(values: Sequence[float], share: float) -> float:
    """By linear interpolation; there must be values. `share`: 0..1."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def is_slowest(rate: float, rates: Sequence[float], share: float) -> bool:
    """Whether a rate is below this percentile of all rates (LATE)."""
    return rate < percentile(rates, share)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of all of them; there must be values."""
    mean = _mean(values)
    return sqrt(_mean([(value - mean) ** 2 for value in values]))


def is_slow(rate: float, rates: Sequence[float], deviations: float = 1.0) -> bool:
    """Whether a rate is below the mean by more than so many standard deviations (Hadoop 0.21)."""
    return _mean(rates) - rate > deviations * deviation(rates)


def is_behind(score: float, scores: Sequence[float], by: float = 0.2) -> bool:
    """Whether a task is behind the mean progress by more than this (Hadoop's own rule before LATE)."""
    return score < _mean(scores) - by


def overdue_after(ended: Sequence[float], times: float, least: float) -> float:
    """After how many seconds a task of a stage is late, by Spark's rule, once enough of them have ended.

    `ended`: run times of tasks that have ended, ascending, at least one. `times` the median is late, but
    nothing is before `least` seconds.
    """
    return max(times * percentile(ended, 0.5), least)


def saves_machine_time(ended: Sequence[float], left: float, least: float = 0.25) -> bool:
    """Whether a copy probably saves seconds of machines (Mantri): P(t_new < left / 2) > least.

    Two attempts run until the new one ends, and one would run for `left`. `ended`: as for `overdue_after`.
    """
    return bool(ended) and bisect_left(ended, left / 2.0) > least * len(ended)


def is_worth_restarting(left: float, anew: float, start: float) -> bool:
    """Whether to end an attempt and begin anew elsewhere (Mantri): what is left is above twice that time.

    `anew`: what the whole work is expected to take there, after `start`.
    """
    return left > 2.0 * anew + start


def copies_most(slots: int, share: float) -> int:
    """How many copies a pool with so many slots may have: a share of them, at least one of `LEAST_SLOTS`."""
    return max(floor(share * slots), int(slots >= LEAST_SLOTS and share > 0.0))


def copies_of_job_most(
    running: int, share: float, *, least: int = 1, slots: int = 0, slots_share: float = 0.0
) -> int:
    """How many copies a job of which so many tasks run may have: a share of these, and `least` in any case.

    Hadoop 0.21 allows ten, a hundredth of all slots or a tenth of what runs, whichever is most.
    """
    return max(least, floor(share * running), floor(slots_share * slots))


SETTLED_LEAST, WON_LEAST = 20, 0.2


def copies_help(settled: int, won: int) -> bool:
    """Whether a job's copies end first often enough, as far as is known: a fifth, once 20 are settled."""
    return settled < SETTLED_LEAST or won >= WON_LEAST * settled
