"""How many explanations are made: so few that neither decisions nor the Lease wait for them.

An explanation takes some milliseconds of the loop's thread, between two steps of the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.serving.budget import Budget
from eclectus.kubeclient.serving.pages import BusyError

IN_A_ROW, A_SECOND = 20, 5.0  # of 10 ms each: a twentieth of the thread's time
WAITING_MOST = 16  # callers, the one that is answered included
CHANGED_IN_A_ROW, CHANGED_A_SECOND = 4, 0.5  # of these, with a changed state: of up to 100 ms each
PAUSE_SECONDS = 0.01  # between two checks whether a renewal of the Lease is still due


class Limits:
    """Admits callers, and lets one after the other ask the engine while no renewal of the Lease is due.

    `now` returns seconds.
    """

    def __init__(
        self,
        is_renewal_due: Callable[[], bool],
        now: Callable[[], float] = elapsed,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._is_renewal_due, self._sleep = is_renewal_due, sleep
        self._budget = Budget(IN_A_ROW, A_SECOND, WAITING_MOST, now)
        self._of_changed = Budget(CHANGED_IN_A_ROW, CHANGED_A_SECOND, WAITING_MOST, now)
        self._one_at_a_time = asyncio.Lock()

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """One caller more, for the length of the block. Raises BusyError where there are too many."""
        with _taken(self._budget, "explanations", A_SECOND):
            yield

    @contextmanager
    def admitted_to_change(self) -> Iterator[None]:
        """The same for an explanation of a changed state, which costs more."""
        with _taken(self._of_changed, "what-if explanations", CHANGED_A_SECOND), self.admitted():
            yield

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Alone, for the length of the block, which must not wait for anything."""
        async with self._one_at_a_time:
            while self._is_renewal_due():
                await self._sleep(PAUSE_SECONDS)
            yield


@contextmanager
def _taken(budget: Budget, what: str, per_second: float) -> Iterator[None]:
    if not budget.take():
        most = f"{per_second:g} a second and {WAITING_MOST} at a time"
        raise BusyError(f"too many {what} are asked for, more than {most}: ask again later")
    try:
        yield
    finally:
        budget.give_back()
