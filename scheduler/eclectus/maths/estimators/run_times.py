"""Run times of tasks: a window of samples, and mean and variation of each kind of work."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

# -- a window of samples -------------------------------------------------------------------------

# A window of samples, oldest first: time and value, 16 bytes each.


class Samples:
    """The newest service times of one node for one workload."""

    __slots__ = ("_at", "_gone", "_seconds")

    def __init__(self) -> None:
        self._at, self._seconds = array("d"), array("d")
        self._gone = 0  # removed samples at the beginning of the arrays, which are not yet cut off

    def __len__(self) -> int:
        return len(self._at) - self._gone

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """(time, seconds), oldest first."""
        return zip(self._at[self._gone :], self._seconds[self._gone :], strict=True)

    @property
    def newest_at(self) -> float:
        """Time of the newest sample."""
        return self._at[-1]

    def add(self, at: float, seconds: float) -> None:
        """Add a sample. Times must not decrease."""
        self._at.append(at)
        self._seconds.append(seconds)

    def add_equal(self, at: float, seconds: float, count: int) -> None:
        """Add so many samples of the same time and value."""
        self._at += array("d", (at,)) * count
        self._seconds += array("d", (seconds,)) * count

    def take_oldest(self) -> tuple[float, float]:
        """Remove the oldest sample and return (time, seconds)."""
        gone = self._gone
        oldest = self._at[gone], self._seconds[gone]
        self._gone = gone + 1
        if 2 * self._gone > len(self._at):  # amortized: each sample is moved once at most
            del self._at[: self._gone]
            del self._seconds[: self._gone]
            self._gone = 0
        return oldest

    def count_since(self, at: float) -> int:
        """Number of samples taken at this time or later."""
        return sum(1 for each in self._at[self._gone :] if each >= at)


# -- each kind of work ---------------------------------------------------------------------------

# Mean and variation of the run times of each kind of work, from its last tasks, on whatever nodes they ran.
#
# Weighted by completions this mean is slots over throughput where all slots are at work, which is what a wait
# behind a backlog depends on, although fast nodes complete more.

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
