"""A low percentile of a quantity over the last hour: a lower bound that single high values do not raise.

Used for mu_bar, the guaranteed capacity in Q. Wu, Z. Liu, "Rosella", 2020:
where the administrator has not set it, it is the 5th percentile over an hour of the sum of learned rates.
The sum itself is not used, because one estimate that is too high would raise it at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import ceil

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
