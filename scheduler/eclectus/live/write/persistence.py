"""Repeats a write until it succeeds, is refused, or has been tried for long enough."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from eclectus.kubeclient.backoff import Backoff
from eclectus.kubeclient.clock import elapsed
from eclectus.kubeclient.errors import ApiError
from eclectus.live.context import Context


class Persistence:
    """`holds_lease` is asked before each attempt."""

    def __init__(self, context: Context, holds_lease: Callable[[], bool]) -> None:
        self._context, self._holds_lease = context, holds_lease

    async def attempt(
        self, write: Callable[[], Awaitable[None]], again: tuple[type[ApiError], ...], seconds: float
    ) -> str:
        """Write, and after these errors write again; returns why it was given up, or nothing.

        Raises every other error of `write`.
        """
        backoff = Backoff(0.1, 5.0, self._context.rng)
        give_up_at = elapsed() + seconds
        problem = "this process no longer holds the Lease for certain"
        while self._holds_lease() and elapsed() < give_up_at:
            try:
                await write()
            except again as error:
                problem = error.message or str(error)
                await asyncio.sleep(getattr(error, "retry_after", None) or backoff.wait())
            else:
                return ""
        return problem
