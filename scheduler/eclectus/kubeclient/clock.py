"""Monotonic time."""

from __future__ import annotations

import time


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
