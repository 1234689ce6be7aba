"""The main loop: events from the inbox go to the engine, its commands go to the outbox; and its watchdog.

After each step the other tasks of the loop run, whatever waits in the inbox: watches are read and binds are
sent on it. While pods wait that a step could not place, the loop also rests: what happens meanwhile is one
step instead of many, so that a backlog does not make a pod dearer. What one step does is bounded by counts
(`inbox.MAX_BATCH`, engine/scheduling_cycle.py); the Lease waits for no step (`live/scheduler_process.py`).

The Lease is renewed and health checks are answered on another thread (`kubeclient/side_loop.py`), so nothing
of them shows that the main loop is busy. The watchdog says that it does not turn, and what its thread is at:
a long step costs latency, no more. A loop that is silent for HUNG_SECONDS counts as hung: this process then
gives up the Lease and fails its liveness check.
"""

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from eclectus.engine.engine import Engine
from eclectus.kubeclient.timing import elapsed
from eclectus.live.inbox import Inbox
from eclectus.live.write.outbox import Outbox
from eclectus.model.commands import Command
from eclectus.model.events import Event

IDLE_SECONDS = 5.0  # the longest sleep, so that an idle loop still passes its liveness check
APART_SECONDS = 0.05  # from a step to one that only time makes due: waits that end one by one end together
LONG_SECONDS = 0.05  # after a step of this length others get REST_SECONDS, and one turn after any other
REST_SECONDS = 0.02  # a bind takes several turns: the request, its answer, the next request
REST_SHARE = 2.0  # of a step's time, for which the loop rests while pods wait: it leaves others two thirds
REST_SECONDS_MOST = 0.1  # up to this: a slot that is free is filled after it
HUNG_SECONDS = 60.0  # without a new iteration, or a turn: longer than any step that was ever measured

_log = logging.getLogger(__name__)

StepObserver = Callable[[float, Sequence[Event], Sequence[Command]], None]
"""Called after every step with (now, events, commands)."""


@dataclass(eq=False)
class Loop:
    """Steps one engine. `now` returns seconds since the epoch and never goes backwards.

    `observe_seconds` is called with the duration of each step, `observers` with the step; these may change
    between two steps.
    """

    engine: Engine
    inbox: Inbox
    outbox: Outbox
    now: Callable[[], float]
    observe_seconds: Callable[[float], None]
    observers: list[StepObserver] = field(default_factory=list)
    rest: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        self._stopping = False
        self._iteration_began_at = elapsed()
        self._stepped_at = -inf  # on the clock of `now`
        self._is_throttled = False

    async def run(self) -> None:
        """Iterate until stopped."""
        while not self._stopping:
            self._iteration_began_at = elapsed()
            # 1. Take the events that have arrived; sleep until there are some or the engine is due.
            events = await self.inbox.take(self._sleep_seconds())
            # 2. Let the engine decide.
            now = self.now()
            if not events and ((due := self.engine.next_step_at()) is None or due > now):
                continue
            began = elapsed()
            commands = self.engine.step(events, now)
            self._stepped_at = now
            # 3. Report the step to the tape and the metrics.
            took = elapsed() - began
            self.observe_seconds(took)
            for observe in self.observers:
                observe(now, events, commands)
            # 4. Hand over the commands; wait while the API server does not keep up.
            self.outbox.accept(commands)
            self._is_throttled = True  # for however long: an unreachable server does not make the loop hung
            await self.outbox.wait_for_room()
            self._is_throttled = False
            # 5. Let other tasks run: they would wait for as long as events wait or a cycle goes on.
            await self.rest(self._rest_seconds(took))

    def stop(self) -> None:
        """Decide nothing more; what has been decided is still sent."""
        self._stopping = True
        self.inbox.wake()

    def trouble(self) -> str:
        """Why the loop fails its liveness check; empty while it passes."""
        silent = 0.0 if self._is_throttled else elapsed() - self._iteration_began_at
        return f"no iteration for {silent:.0f} s" if silent > HUNG_SECONDS else ""

    def _rest_seconds(self, took: float) -> float:
        """How long to rest after a step that took so many seconds."""
        least = REST_SECONDS if took > LONG_SECONDS else 0.0
        due = self.engine.next_step_at()
        if not self.engine.waits or (due is not None and due <= self._stepped_at):  # or the cycle goes on
            return least
        return max(least, min(REST_SHARE * took, REST_SECONDS_MOST))

    def _sleep_seconds(self) -> float:
        due = self.engine.next_step_at()
        if due is None:
            return IDLE_SECONDS
        if due > self._stepped_at:
            due = max(due, self._stepped_at + APART_SECONDS)
        return min(max(due - self.now(), 0.0), IDLE_SECONDS)


ASK_SECONDS = 1.0  # between two requests for a sign of life
REPORT_SECONDS = 5.0  # of silence, until a line is logged; the next one after twice as long
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
            if self._loop is not None and not self._is_asked:
                self._answered_at, self._is_asked = elapsed(), True
                self._loop.call_soon_threadsafe(self._answer)
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

    def _answer(self) -> None:
        self._is_asked = False

    def _where(self) -> str:
        frame = sys._current_frames().get(self._thread)  # noqa: SLF001 — documented, for such tools
        calls = traceback.extract_stack(frame)[-FRAMES_MOST:] if frame else []
        return " > ".join(f"{call.filename.rpartition('/')[2]}:{call.lineno} {call.name}" for call in calls)
