"""Writes that are repeated until they are done or refused, and those of the newest value of each key."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, Literal, TypeVar

from eclectus.kubeclient.api_errors import ApiError, ConflictError, MissingError, NotDoneError, UnsureError
from eclectus.kubeclient.timing import Backoff, elapsed
from eclectus.live.context import Context
from eclectus.live.write.workers import WorkerPool

UNDONE = (NotDoneError, UnsureError)  # after these a write that may be done twice is repeated
OUTDATED = (ConflictError, *UNDONE)  # one that is made anew each time, too: the watch brings the new version
LEASE_LOST = "this process no longer holds the Lease for certain"

Result = Literal["written", "gone", "refused", "failed"]
Value = TypeVar("Value")


class Persistence:
    """Repeats writes. `may_write` is asked before each attempt."""

    def __init__(self, context: Context, may_write: Callable[[], bool], least_pause: float = 0.1) -> None:
        self._rng = context.rng
        self._may_write = may_write
        self._least_pause = least_pause  # seconds

    async def attempt(
        self, write: Callable[[], Awaitable[None]], again: tuple[type[ApiError], ...], seconds: float
    ) -> ApiError | None:
        """Write, and after errors of these kinds write again; returns why it was given up, or nothing.

        Raises every other error of `write`.
        """
        backoff = Backoff(self._least_pause, 5.0, self._rng)
        give_up_at = elapsed() + seconds
        found = ApiError("", message=LEASE_LOST)
        while self._may_write() and elapsed() < give_up_at:
            try:
                await write()
            except again as error:
                found = error
                await asyncio.sleep(error.retry_after or backoff.wait())
            else:
                return None
        return found


class NewestWriter(ABC, Generic[Value]):
    """Writes the newest value of each key, which replaces one that still waits; `workers.run()` must run.

    A value is given up after `patience` seconds.
    """

    def __init__(self, name: str, in_flight: int, persistence: Persistence, patience: float) -> None:
        self._persistence = persistence
        self._patience = patience
        self._newest: dict[str, Value] = {}
        self.workers: WorkerPool[str] = WorkerPool(name, in_flight, self._work)

    def put(self, key: str, value: Value) -> None:
        """Queue the value to be written."""
        is_queued = key in self._newest
        self._newest[key] = value
        if not is_queued:
            self.workers.put(key)

    def cancel(self, key: str) -> None:
        """Drop the value of this key, if it still waits."""
        self._newest.pop(key, None)

    @abstractmethod
    async def _write(self, value: Value) -> None:
        """Try once. Raises ApiError; MissingError where there is nothing any more to write it on."""

    @abstractmethod
    def _ended(self, value: Value, result: Result, error: ApiError | None) -> None:
        """The value is written or never will be; `error` says why if that is no normal end."""

    async def _work(self, key: str) -> None:
        """Write until the newest value is written; the key is in `_newest` as long as this goes on."""
        sent: Value | None = None

        async def write() -> None:
            nonlocal sent
            sent = self._newest.get(key)
            if sent is not None:
                await self._write(sent)

        while (value := self._newest.get(key)) is not None and value is not sent:
            result, error = await self._result(write)
            self._ended(value, result, error)
            if error is not None:
                break
        self._newest.pop(key, None)

    async def _result(self, write: Callable[[], Awaitable[None]]) -> tuple[Result, ApiError | None]:
        try:
            given_up = await self._persistence.attempt(write, OUTDATED, self._patience)
        except MissingError:
            return "gone", None
        except ApiError as error:
            return "refused", error
        return ("written" if given_up is None else "failed"), given_up
