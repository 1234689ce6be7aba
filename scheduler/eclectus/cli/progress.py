"""A progress bar with the rate and the remaining time; shown on a terminal only."""

from __future__ import annotations

import sys
import time
from types import TracebackType

import click

WIDTH = 30  # characters of the bar
REDRAW_SECONDS = 0.2  # seconds
ERASE = "\r\033[K"


class Bar:
    """Shows how many of the expected tasks have ended; erased at the end. Call it with the number so far."""

    def __init__(self, expected: int) -> None:
        self._expected = max(expected, 1)
        # (time, tasks ended) of the first call: the rate is measured from there, because the worker
        # processes take seconds to start.
        self._began: tuple[float, int] | None = None
        self._drawn_at = 0.0
        self._is_shown = sys.stderr.isatty()

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_shown:
            click.echo(ERASE, err=True, nl=False)

    def __call__(self, ended: int) -> None:
        """Draw the bar for so many ended tasks, unless it was drawn just now."""
        now = time.monotonic()
        if not self._is_shown or not ended:
            return
        if self._began is None:
            self._began = now, ended
        began, before = self._began
        if ended > before and now - self._drawn_at >= REDRAW_SECONDS:
            self._drawn_at = now
            rate = (ended - before) / (now - began)
            click.echo(ERASE + line(ended, self._expected, rate), err=True, nl=False)


def line(ended: int, expected: int, rate: float) -> str:
    """`██████░░░░  20%  3,100 tasks/s  2 min 5 s to go`; the rate in tasks per second."""
    share = min(ended / expected, 1.0)
    bar = "█" * int(WIDTH * share)
    left = duration(max(expected - ended, 0) / rate)
    return f"{bar:░<{WIDTH}} {share:4.0%}  {rate:,.0f} tasks/s  {left} to go"


def duration(seconds: float) -> str:
    """A duration in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"
