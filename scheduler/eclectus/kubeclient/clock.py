"""Time that never runs backwards."""

from __future__ import annotations

import time


def elapsed() -> float:
    """Seconds since some fixed moment, counting the time a machine was suspended.

    CLOCK_MONOTONIC stands still while a laptop or a virtual machine sleeps; a leader that woke up
    would believe that its lease had only just been renewed.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class Clock:
    """Seconds since the epoch as they were at the start, moved on by a clock nobody can set."""

    def __init__(self) -> None:
        self._offset = time.time() - elapsed()

    def now(self) -> float:
        """Seconds since the epoch, monotone."""
        return elapsed() + self._offset
