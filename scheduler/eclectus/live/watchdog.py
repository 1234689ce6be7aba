"""Says that the main loop does not turn, and what its thread is at: a long step costs latency, no more.

The Lease is renewed and health checks are answered on another thread (`kubeclient/side_loop.py`), so nothing
of them shows that the main loop is busy. A loop that is silent for HUNG_SECONDS counts as hung: this process
then gives up the Lease and fails its liveness check.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable

from eclectus.kubeclient.timing import elapsed

_log = logging.getLogger(__name__)

ASK_SECONDS = 1.0  # between two requests for a sign of life
REPORT_SECONDS = 5.0  # of silence, until a line is logged; the next one after twice as long
HUNG_SECONDS = 60.0  # of silence: longer than any step that was ever measured
FRAMES_MOST = 6  # innermost calls that a line names


class Watchdog:
    """Watches the loop and the thread that call `watch_this`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._answered_at = 0.0
        self._is_asked = False

    def watch_this(self) -> None:
        """Watch the loop that runs now, on the thread that runs it."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._answer()

    async def run(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Ask for signs of life until cancelled, on a loop of another thread."""
        report_at = REPORT_SECONDS
        while True:
            self._ask()
            await sleep(ASK_SECONDS)
            silent = self.silent_seconds()
            if silent < REPORT_SECONDS:
                report_at = REPORT_SECONDS
            elif silent >= report_at:
                report_at = 2 * silent
                _log.warning("the main loop has not turned for %.0f s; it is at %s", silent, self._where())

    def silent_seconds(self) -> float:
        """For how long a sign of life has been asked for in vain."""
        return elapsed() - self._answered_at if self._is_asked else 0.0

    def trouble(self) -> str:
        """Why this process counts as hung; empty while it does not."""
        silent = self.silent_seconds()
        return f"the main loop has not turned for {silent:.0f} s" if silent > HUNG_SECONDS else ""

    def _ask(self) -> None:
        if self._loop is not None and not self._is_asked:
            self._answered_at = elapsed()
            self._is_asked = True
            self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._is_asked = False

    def _where(self) -> str:
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 — documented, for such tools
        calls = traceback.extract_stack(frame)[-FRAMES_MOST:] if frame else []
        return " > ".join(f"{call.filename.rpartition('/')[2]}:{call.lineno} {call.name}" for call in calls)
