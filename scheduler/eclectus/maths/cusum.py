"""Has a speed changed? A two-sided CUSUM on logarithms of actual over expected time, clipped.

E. S. Page, "Continuous inspection schemes", 1954; rosella.md 5.5. Each sample gives a score

    z = (ln r - what is usual of ln r for this work) / its usual spread,   clipped to +-2
    up   = max(0, up + z - slack)        grows when tasks take longer than they should
    down = max(0, down - z - slack)      grows when they take less

and either sum above the threshold is an alarm: the speed has changed, and the samples since that sum
last was 0 are those of the new speed.

Sizes are heavy-tailed, so three things keep chance from sounding the alarm. The logarithm turns a factor
into a sum. What is usual is measured for each workload (maths/spread.py), whatever law its sizes follow.
And the clip: no single task, however long, says more than two spreads; an alarm takes at least five.

Measured: samples to the alarm, mean (90th percentile), slack 0.5, threshold 6; before a change, its
mean alone. `scv` is the squared coefficient of variation of sizes.

@TABLE@

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
