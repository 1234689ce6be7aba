"""Progress of something long: one moving line on a terminal, a line every 15 s elsewhere."""

import sys
import threading
import time
from typing import Self, TextIO

LINE_EVERY_SECONDS = 15.0  # often enough that no CI job looks dead, rare enough to read
MOVE_EVERY_SECONDS = 0.5


class Progress:
    """`with Progress("building") as progress: ... progress.say("12 of 40")`.

    A thread keeps the clock moving while the caller waits for a slow step. Nothing is printed
    for work that ends before the first interval.
    """

    def __init__(self, title: str, out: TextIO | None = None, every_seconds: float | None = None) -> None:
        self._title = title
        self._out = out or sys.stderr
        self._terminal = self._out.isatty()
        self._every = every_seconds or (MOVE_EVERY_SECONDS if self._terminal else LINE_EVERY_SECONDS)
        self._detail = ""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)
        self._began = time.monotonic()
        self._printed = False

    def say(self, detail: str) -> None:
        """Set the detail that the next line shows."""
        self._detail = detail

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.quiet()

    def quiet(self) -> None:
        """Stop printing; the last line says how long it took."""
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
