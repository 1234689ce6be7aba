"""A test for a change of speed: two-sided CUSUM on the logarithm of actual over expected time, clipped.

E. S. Page, "Continuous inspection schemes", Biometrika, 1954. Each sample gives a score

    z = (ln r - usual location of ln r for this workload) / its usual spread,   clipped to +-2
    up   = max(0, up + z - slack)        grows when tasks take longer than expected
    down = max(0, down - z - slack)      grows when they take less

An alarm is raised when either sum exceeds the threshold: the speed has changed, and the samples since that
sum was last 0 are samples of the new speed.

Tasks that start together end in the order of their sizes: the first ends look like those of a faster node,
the last ones like those of a slower. So with each end a test gets what ended *and* running tasks have shown
since the last one:

    z' = z + sum over the running tasks of their scores so far - that sum after the last end,   within -2..4

A score so far grows from 0 at a task's start (maths/estimators/ratio.py). In all, a task that ends adds its
own z and a deleted one nothing, whatever the order.

Task sizes are heavy-tailed, so three things keep false alarms rare. The logarithm turns a factor into a
difference. Location and spread are estimated for each workload (maths/estimators/ratio.py), so no
distribution of sizes is assumed. The clip limits a single task, however long, to two spreads; from 0 an alarm
takes at least five samples of tasks that run alone, and two where many run.

Measured for tasks that run alone, with slack 0.5 and threshold 6: mean number of samples to a false alarm;
and, after all times change by a factor, mean number of samples to the alarm (90th percentile). `scv` is the
squared coefficient of variation.

    sizes              false alarm      x 4      x 1/4        x 2      x 1/2
    exponential              2,037   10 (16)   11 (17)    35 (71)    47 (97)
    scv 4                    1,531   11 (19)   12 (20)   50 (103)   54 (114)
    scv 10                   1,584   11 (18)   12 (19)    44 (87)   50 (103)
    scv 25                   1,704   10 (16)   11 (18)    39 (79)    47 (95)
    log-normal, sd 2         2,344   27 (53)   27 (52)  165 (370)  161 (368)
    bounded Pareto 1.5       1,460    5 (5)     5 (7)      9 (14)     9 (14)
    log-normal, sd 0.3       2,596    4 (5)     4 (5)      5 (6)      5 (6)
    within 5 %               never    5 (5)     5 (5)      5 (5)      5 (5)

With exponential sizes, a change by a factor of 2 is found in about as many samples as a window holds.
Threshold 5: a false alarm in 650 samples, a change by 4 found in 8; threshold 7: in 5,000, and in 12.
"""

from __future__ import annotations

from typing import Generic, NamedTuple

from eclectus.maths.numbers import Arithmetic, Value

CLIP = 2.0
MOST_SHOWN = 4.0  # what one sample counts for, where many tasks run that are overdue


class Sums(NamedTuple, Generic[Value]):
    """The two sums, and the time of the first sample since each was last 0; floats, or arrays over cells."""

    up: Value
    down: Value
    up_since: Value
    down_since: Value


AT_REST = Sums(0.0, 0.0, 0.0, 0.0)


def step(m: Arithmetic[Value], sums: Sums[Value], score: Value, at: float, slack: float) -> Sums[Value]:
    """The sums after one more sample of score z, taken at time `at`, seconds."""
    up, down, up_since, down_since = sums
    return Sums(
        m.maximum(up + score - slack, 0.0),
        m.maximum(down - score - slack, 0.0),
        m.where(up > 0.0, up_since, at),
        m.where(down > 0.0, down_since, at),
    )


def clipped(score: float) -> float:
    """A score within +-CLIP."""
    return min(max(score, -CLIP), CLIP)


def shown(score: float, growth: float) -> float:
    """z' from the score of an ended task and the change of the sum of the scores so far."""
    return min(max(score + growth, -CLIP), MOST_SHOWN)


def changed_since(sums: Sums[float], threshold: float) -> float | None:
    """The time since which the speed of one cell has been another; None without an alarm."""
    if sums.up > threshold:
        return float(sums.up_since)
    return float(sums.down_since) if sums.down > threshold else None
