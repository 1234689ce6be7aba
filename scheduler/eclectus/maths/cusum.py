"""Has a speed changed? A two-sided CUSUM on logarithms of actual over expected time, clipped.

E. S. Page, "Continuous inspection schemes", 1954; rosella.md 5.5. Each sample gives a score

    z = (ln r - what is usual of ln r for this work) / its usual spread,   clipped to +-2
    up   = max(0, up + z - slack)        grows when tasks take longer than they should
    down = max(0, down - z - slack)      grows when they take less

and either sum above the threshold is an alarm: the speed has changed, and the samples since that sum
last was 0 are those of the new speed.

Sizes are heavy-tailed, so three things keep chance from sounding the alarm. The logarithm turns a factor
into a sum. What is usual is measured for each workload (maths/spread.py), whatever law its sizes follow.
And the clip: no single task, however long, says more than two spreads; from rest an
alarm takes five of them at least.

Measured, with slack 0.5 and threshold 6: samples to a false alarm, mean; and from a change of all times by
a factor to the alarm, mean (90th percentile). `scv` is the squared coefficient of variation.

    sizes              false alarm      x 4      x 1/4        x 2      x 1/2
    exponential              2,037   10 (16)   11 (17)    35 (71)    47 (97)
    scv 4                    1,531   11 (19)   12 (20)   50 (103)   54 (114)
    scv 10                   1,584   11 (18)   12 (19)    44 (87)   50 (103)
    scv 25                   1,704   10 (16)   11 (18)    39 (79)    47 (95)
    log-normal, sd 2         2,344   27 (53)   27 (52)  165 (370)  161 (368)
    bounded Pareto 1.5       1,460    5 (5)     5 (7)      9 (14)     9 (14)
    log-normal, sd 0.3       2,596    4 (5)     4 (5)      5 (6)      5 (6)
    within 5 %               never    5 (5)     5 (5)      5 (5)      5 (5)

A change by 2 of exponential sizes takes about as long as the window takes to turn over, so either will do.
Threshold 5: a false alarm in 650 samples, x 4 found in 8; threshold 7: in 5,000, and in 12.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from eclectus.maths.numbers import Arithmetic

CLIP = 2.0


class Sums(NamedTuple):
    """The two sums, and the time of the first sample since each last was 0; floats, or arrays over cells."""

    up: Any
    down: Any
    up_since: Any
    down_since: Any


AT_REST = Sums(0.0, 0.0, 0.0, 0.0)


def step(m: Arithmetic, sums: Sums, score: Any, at: float, slack: float) -> Sums:
    """One more sample of score z, taken at time `at`, seconds."""
    up, down, up_since, down_since = sums
    return Sums(
        m.maximum(up + score - slack, 0.0),
        m.maximum(down - score - slack, 0.0),
        m.where(up > 0.0, up_since, at),
        m.where(down > 0.0, down_since, at),
    )


def changed_since(sums: Sums, threshold: float) -> float | None:
    """When the speed of one cell began to be another; None while there is no alarm."""
    if sums.up > threshold:
        return float(sums.up_since)
    return float(sums.down_since) if sums.down > threshold else None
