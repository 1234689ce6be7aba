"""Progress of long work: one updated line on a terminal, otherwise a line every 15 s."""

import sys
import threading
import time
from typing import Self, TextIO

LINE_EVERY_SECONDS = 15.0  # often enough that a CI job does not look stuck
UPDATE_EVERY_SECONDS = 0.5


class Progress:
    """`with Progress("building") as progress: ... progress.update("12 of 40")`.

    A thread updates the elapsed time while the caller waits for a slow step. Nothing is printed for work
    that ends before the first interval, unless `expected`, how long the work takes, is given: then a line
    with it is printed at once.
    """

    def __init__(
        self, title: str, out: TextIO | None = None, every_seconds: float | None = None, expected: str = ""
    ) -> None:
        self._title, self._expected = title, expected
        self._out = out or sys.stderr
        self._terminal = self._out.isatty()
        self._every = every_seconds or (UPDATE_EVERY_SECONDS if self._terminal else LINE_EVERY_SECONDS)
        self._detail = ""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._began = time.monotonic()
        self._printed = False

    def update(self, detail: str) -> None:
        """Set the detail that the next line shows."""
        self._detail = detail

    def say(self, text: str) -> None:
        """Print a line of its own, above the one that is updated."""
        self._out.write(("\r\x1b[2K" if self._terminal else "") + text + "\n")
        self._out.flush()

    def __enter__(self) -> Self:
        if self._expected:
            self._out.write(f"{self._title}: takes {self._expected}\n")
            self._out.flush()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop printing; the last line shows how long the work took."""
        if self._done.is_set():
            return
        self._done.set()
        self._thread.join()
        if self._printed:
            self._print(last=True)

    def _tick(self) -> None:
        while not self._done.wait(self._every):
            self._print(last=False)

    def _print(self, *, last: bool) -> None:
        self._printed = True
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        text = f"{self._title}: {minutes}:{seconds:02d}" + (f", {self._detail}" if self._detail else "")
        if self._terminal:
            self._out.write("\r\x1b[2K" + text + ("\n" if last else ""))
        else:
            self._out.write(text + (" (done)\n" if last else "\n"))
        self._out.flush()
