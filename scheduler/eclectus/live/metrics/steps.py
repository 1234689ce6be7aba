"""How long steps of the engine take: all of them as a histogram, and the longest of the last minutes."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry

from eclectus.kubeclient.clock import elapsed
from eclectus.live.metrics.families import gauge, histogram

PERIOD_SECONDS = 60.0  # two scrapes at the usual interval of 30 s


class StepDurations:
    """A histogram, whose buckets show that a rare step was long, and a gauge, which shows how long."""

    def __init__(self, registry: CollectorRegistry, now: Callable[[], float] = elapsed) -> None:
        self._histogram = histogram(
            "scheduling_algorithm_duration_seconds", registry, [0.0001 * 2**k for k in range(14)]
        )
        gauge("longest_step_seconds", registry).set_function(self.longest)
        self._now = now
        self._period = 0  # the number of the current period, and the longest of it and of the one before
        self._current = self._previous = 0.0

    def observe(self, seconds: float) -> None:
        """A step has taken so long."""
        self._histogram.observe(seconds)
        self._begin_period()
        self._current = max(self._current, seconds)

    def longest(self) -> float:
        """The longest of the last one to two periods, seconds; 0 without any."""
        self._begin_period()
        return max(self._current, self._previous)

    def _begin_period(self) -> None:
        period = int(self._now() / PERIOD_SECONDS)
        if period > self._period:
            self._previous = self._current if period == self._period + 1 else 0.0
            self._current, self._period = 0.0, period
