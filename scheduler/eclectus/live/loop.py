"""The main loop: events from the inbox go to the engine, its commands go to the outbox.

After each step the other tasks of the loop run, whatever waits in the inbox: watches are read and binds are
sent on it. What one step does is bounded by counts (`inbox.MAX_BATCH`, engine/scheduling_cycle.py); the Lease
waits for no step (`live/scheduler_process.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eclectus.engine.engine import Engine
from eclectus.kubeclient.timing import elapsed
from eclectus.live.inbox import Inbox
from eclectus.live.write.outbox import Outbox
from eclectus.model.commands import Command
from eclectus.model.events import Event

IDLE_SECONDS = 5.0  # the longest sleep, so that an idle loop still passes its liveness check
LONG_SECONDS = 0.05  # after a step of this length others get REST_SECONDS, and one turn after any other
REST_SECONDS = 0.02  # a bind takes several turns: the request, its answer, the next request
HUNG_SECONDS = 60.0  # a loop without a new iteration for this long fails its liveness check

StepObserver = Callable[[float, Sequence[Event], Sequence[Command]], None]
"""Called after every step with (now, events, commands)."""


@dataclass(eq=False)
class Loop:
    """Steps one engine. `now` returns seconds since the epoch and never goes backwards.

    `observe_seconds` is called with the duration of each step, `observers` with the step.
    """

    engine: Engine
    inbox: Inbox
    outbox: Outbox
    now: Callable[[], float]
    observe_seconds: Callable[[float], None]
    observers: Sequence[StepObserver] = ()

    def __post_init__(self) -> None:
        self._stopping = False
        self._iteration_began_at = elapsed()
        self._is_throttled = False

    async def run(self) -> None:
        """Iterate until stopped."""
        while not self._stopping:
            self._iteration_began_at = elapsed()
            # 1. Take the events that have arrived; sleep until there are some or the engine is due.
            events = await self.inbox.take(self._sleep_seconds())
            # 2. Let the engine decide.
            now = self.now()
            if not events and not self._is_due(now):
                continue
            began = elapsed()
            commands = self.engine.step(events, now)
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
            await asyncio.sleep(REST_SECONDS if took > LONG_SECONDS else 0.0)

    def stop(self) -> None:
        """Decide nothing more; what has been decided is still sent."""
        self._stopping = True
        self.inbox.wake()

    def trouble(self) -> str:
        """Why the loop fails its liveness check; empty while it passes."""
        silent = 0.0 if self._is_throttled else elapsed() - self._iteration_began_at
        return f"no iteration for {silent:.0f} s" if silent > HUNG_SECONDS else ""

    def _sleep_seconds(self) -> float:
        due = self.engine.next_step_at()
        return IDLE_SECONDS if due is None else min(max(due - self.now(), 0.0), IDLE_SECONDS)

    def _is_due(self, now: float) -> bool:
        due = self.engine.next_step_at()
        return due is not None and due <= now
