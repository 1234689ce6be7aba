"""Mean and variation of the run times of each kind of work, from its last tasks, on whatever nodes they ran.

Weighted by completions this mean is slots over throughput where all slots are at work, which is what a wait
behind a backlog depends on, although fast nodes complete more.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

MEMORY = 200.0  # tasks: weight of a new one is 1 / MEMORY, once there were so many
MIN_SAMPLES = 5  # before which nothing is estimated
MAX_WORKLOADS = 4096  # beyond it the one without a completion for longest is forgotten
MAX_VARIATION = 25.0  # of the squared coefficient of variation; larger values come from single tasks


class ServiceTime(NamedTuple):
    """Of one kind of work: mean in seconds, and squared coefficient of variation."""

    mean_seconds: float
    variation: float


class ServiceTimes:
    """The service times of the kinds of work that were seen last."""

    def __init__(self) -> None:
        self._moments: OrderedDict[str, tuple[int, float, float]] = OrderedDict()  # samples, E[S], E[S^2]

    def observe(self, workload: str, seconds: float) -> None:
        """A task has run for so long, above 0."""
        samples, first, second = self._moments.pop(workload, (0, 0.0, 0.0))
        weight = max(1.0 / MEMORY, 1.0 / (samples + 1))
        first += weight * (seconds - first)
        second += weight * (seconds * seconds - second)
        self._moments[workload] = samples + 1, first, second
        if len(self._moments) > MAX_WORKLOADS:
            self._moments.popitem(last=False)

    def of(self, workload: str) -> ServiceTime | None:
        """The service time of this kind of work; None until enough of its tasks have ended."""
        samples, first, second = self._moments.get(workload, (0, 0.0, 0.0))
        if samples < MIN_SAMPLES:
            return None
        return ServiceTime(first, min(max(second / first**2 - 1.0, 0.0), MAX_VARIATION))
