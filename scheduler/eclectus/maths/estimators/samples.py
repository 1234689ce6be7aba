"""A window of samples, oldest first: time and value, 16 bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Iterator


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
