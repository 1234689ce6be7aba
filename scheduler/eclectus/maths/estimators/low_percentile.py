"""What a changing quantity can be counted on to be: a low percentile of its last hour.

rosella.md 2: the guaranteed capacity mu_bar, where no operator has set it, is the 5th percentile of the
sum of learned rates over an hour. The sum itself would not do: one lucky estimate raises it at once.
"""

from __future__ import annotations

from collections import deque

import numpy as np

PERIOD_SECONDS = 60.0
PERIODS = 60  # an hour of them
PERCENTILE = 5.0


class LowPercentile:
    """One reading a period; what comes between is not looked at.

    The first comes when a period is over: before that hardly anything has been seen, and an hour is long.
    """

    def __init__(self) -> None:
        self._readings: deque[float] = deque(maxlen=PERIODS)
        self._due: float | None = None
        self.value = 0.0  # 0 before the first reading

    def is_due(self, now: float) -> bool:
        """Whether it is time for a reading."""
        if self._due is None:
            self._due = now + PERIOD_SECONDS
        return now >= self._due

    def add(self, quantity: float, now: float) -> None:
        """Take a reading."""
        self._readings.append(quantity)
        self._due = now + PERIOD_SECONDS
        self.value = float(np.percentile(np.array(self._readings), PERCENTILE))
