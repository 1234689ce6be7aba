"""The scheduler's day: what has arrived goes to the engine, what it wants goes to the outbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from prometheus_client import Histogram

from eclectus.kubeclient.clock import elapsed
from eclectus.live.inbox import Inbox
from eclectus.live.write.outbox import Outbox
from eclectus.model.commands import Command
from eclectus.model.events import Event

IDLE_SECONDS = 5.0  # the longest sleep: a sign of life for the probe
HUNG_SECONDS = 60.0  # a loop that has not come round for so long is taken for dead


class Decider(Protocol):
    """What the shell asks of an engine."""

    def step(self, events: Sequence[Event], now: float) -> list[Command]:
        """Take in events, answer with commands."""

    def next_step_at(self) -> float | None:
        """When to step even if nothing happens, on the clock of `now`."""


Witness = Callable[[float, Sequence[Event], Sequence[Command]], None]
"""Told of every step: (now, events, commands)."""


class Loop:
    """Feeds one engine. `now` gives seconds since the epoch, never falling."""

    def __init__(
        self,
        engine: Decider,
        inbox: Inbox,
        outbox: Outbox,
        now: Callable[[], float],
        *,
        step_seconds: Histogram,
        witnesses: Sequence[Witness] = (),
    ) -> None:
        self._engine, self._inbox, self._outbox, self._now = engine, inbox, outbox, now
        self._step_seconds, self._witnesses = step_seconds, witnesses
        self._stopping = False
        self._round_at = elapsed()
        self._waits_for_room = False

    async def run(self) -> None:
        """Round after round, until stopped."""
        while not self._stopping:
            self._round_at = elapsed()
            # 1. Gather what has arrived; sleep until something does, or the engine wants to be woken.
            events = await self._inbox.gather(self._sleep_seconds())
            # 2. Let the engine decide.
            now = self._now()
            if not events and not self._due(now):
                continue
            with self._step_seconds.time():
                commands = self._engine.step(events, now)
            # 3. Let the tape and the stopwatches see it.
            for witness in self._witnesses:
                witness(now, events, commands)
            # 4. Hand the decisions out, and wait while there are more than the API server takes.
            self._outbox.accept(commands)
            self._waits_for_room = True  # however long: a server that is down is no fault of the loop
            await self._outbox.room()
            self._waits_for_room = False

    def stop(self) -> None:
        """Decide nothing more; what is decided still goes out."""
        self._stopping = True
        self._inbox.wake()

    def trouble(self) -> str:
        """What is wrong with the loop; empty when it is alive."""
        silent = 0.0 if self._waits_for_room else elapsed() - self._round_at
        return f"no round for {silent:.0f} s" if silent > HUNG_SECONDS else ""

    def _sleep_seconds(self) -> float:
        wake = self._engine.next_step_at()
        return IDLE_SECONDS if wake is None else min(max(wake - self._now(), 0.0), IDLE_SECONDS)

    def _due(self, now: float) -> bool:
        wake = self._engine.next_step_at()
        return wake is not None and wake <= now
