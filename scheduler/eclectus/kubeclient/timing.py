"""Monotonic time, and how long to wait between two tries."""

from __future__ import annotations

import time
from random import Random


def elapsed() -> float:
    """Seconds since some fixed moment, including the time for which the machine was suspended.

    CLOCK_MONOTONIC stops while a laptop or a virtual machine sleeps: a leader that wakes up would believe
    that it had only just renewed its lease.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Clock:
    """Seconds since the epoch: the wall clock at the start, advanced by the monotonic clock."""

    def __init__(self) -> None:
        self._offset = time.time() - elapsed()

    def now(self) -> float:
        """Seconds since the epoch; never decreases."""
        return elapsed() + self._offset


class Backoff:
    """Waits that double from `least` to `most` seconds; each is drawn uniformly from its upper half."""

    def __init__(self, least: float, most: float, rng: Random) -> None:
        self._least = least
        self._most = most
        self._rng = rng
        self._next = least

    def wait(self) -> float:
        """Seconds to wait now; the next wait is longer."""
        ceiling, self._next = self._next, min(self._next * 2, self._most)
        return ceiling * (0.5 + 0.5 * self._rng.random())

    def reset(self) -> None:
        """Start from the shortest wait again, after a success."""
        self._next = self._least
