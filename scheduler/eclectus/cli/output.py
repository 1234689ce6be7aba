"""How answers are printed: tables in columns, JSON and YAML, ages as kubectl prints them, and progress."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime

import click

from eclectus.model.printed import ABSENT, span


def structured(value: object, output: str) -> str:
    """The value as `json` or `yaml`."""
    if output == "json":
        import json

        return json.dumps(value, indent=2)
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False)).rstrip("\n")


def aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of cells in columns, without trailing blanks."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def age(moment: str | None, now: datetime) -> str:
    """The time since an RFC 3339 moment: 45s, 12m, 5h, 3d."""
    if moment is None:
        return ABSENT
    return span(max((now - datetime.fromisoformat(moment)).total_seconds(), 0.0))


def count(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


WIDTH = 30  # characters of the bar
REDRAW_SECONDS = 0.2  # on a terminal
FIRST_LINE_SECONDS = 2.0  # what takes less time prints nothing into a pipe or a log
NEXT_LINE_SECONDS = 10.0
ERASE = "\r\033[K"


class Progress:
    """`with Progress("simulating", 20_000, "tasks") as progress: … progress(done)`, on standard error.

    A thread prints, so a step that reports nothing is seen to last. On a terminal the line is erased at the
    end. `expected` 0 means that the number of all units is not known.
    """

    def __init__(self, doing: str, expected: float = 0, unit: str = "") -> None:
        self._doing = doing
        self._expected = expected
        self._unit = unit
        self._entered = time.monotonic()
        # (time, units done) of the first report: the rate is measured from there, because the worker
        # processes take seconds to start.
        self._first: tuple[float, int] | None = None
        self._done = 0
        self._is_terminal = sys.stderr.isatty()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._print_until_ended, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._is_terminal:
            click.echo(ERASE, err=True, nl=False)

    def __call__(self, done: int) -> None:
        """Report how many units are done."""
        if self._first is None and done:
            self._first = time.monotonic(), done
        self._done = done

    def _print_until_ended(self) -> None:
        wait = REDRAW_SECONDS if self._is_terminal else FIRST_LINE_SECONDS
        while not self._ended.wait(wait):
            if self._is_terminal:
                click.echo(f"{ERASE}{self._text()}", err=True, nl=False)
            else:
                click.echo(self._text(), err=True)
                wait = NEXT_LINE_SECONDS

    def _text(self) -> str:
        now, done = time.monotonic(), self._done
        began, before = self._first or (now, done)
        if done <= before:
            return f"{self._doing}: {duration(now - self._entered)}"
        rate = (done - before) / (now - began)
        if not self._expected:
            return f"{self._doing}: {done:,} {self._unit}  {rate:,.0f} {self._unit}/s"
        return f"{self._doing}: {line(done, self._expected, rate, self._unit, bar=self._is_terminal)}"


def line(done: int, expected: float, rate: float, unit: str, *, bar: bool) -> str:
    """`██████░░░░  20%  3,100 tasks/s  2 min 5 s to go`, with or without the bar. The rate is in units/s."""
    share = min(done / expected, 1.0)
    blocks = f"{'█' * int(WIDTH * share):░<{WIDTH}} " if bar else ""
    left = duration(max(expected - done, 0) / rate)
    return f"{blocks}{share:4.0%}  {rate:,.0f} {unit}/s  {left} to go"


def duration(seconds: float) -> str:
    """A duration in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60} min"
