"""Monotonic time, how long to wait between two tries, and log lines about a trouble that lasts.

Of a trouble there is one line at its start, others ever more rarely, and one at its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

    def at(self, moment: float) -> float:
        """Seconds since the epoch, at a moment that `elapsed` has returned."""
        return moment + self._offset


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


REPEAT_SECONDS = 60.0  # from the first line to the second; each further gap is twice as long
REPEAT_SECONDS_MOST = 1800.0  # of a gap


class TroubleLog:
    """The troubles of one part of the process. A new kind is logged at once, a known one when it is due."""

    def __init__(
        self, log: logging.Logger, now: Callable[[], float] = elapsed, extra: Mapping[str, str] | None = None
    ) -> None:
        self._log = log
        self._now = now
        self._extra = extra
        # Kind -> when it was logged last, and for how long it is silent then; kept when it is over, against
        # flapping.
        self._last: dict[str, tuple[float, float]] = {}
        self._since: float | None = None  # when the present trouble began
        self._is_logged = False  # whether anything of the present trouble has been logged

    def failed(self, kind: str, message: str) -> None:
        """It has failed; the message is logged if nothing, or nothing for long, was said about this kind."""
        now = self._now()
        self._since = now if self._since is None else self._since
        at, gap = self._last.get(kind, (-inf, 0.0))
        if now < at + gap:
            return
        is_recent = now < at + 2 * REPEAT_SECONDS_MOST
        self._last[kind] = now, min(gap * 2, REPEAT_SECONDS_MOST) if is_recent else REPEAT_SECONDS
        self._is_logged = True
        self._log.warning("%s", message, extra=self._extra)

    def succeeded(self, message: str) -> None:
        """It works; logged with the length of the trouble if one was logged."""
        if self._since is None:
            return
        since, self._since = self._since, None
        if self._is_logged:
            self._is_logged = False
            self._log.info("%s, after %.0f s", message, self._now() - since, extra=self._extra)
