"""Pages that cost little of the loop's time, however many clients ask for them.

A page is made in parts, and other tasks run between two of them. Only one page of a path is made at a time,
and after each part the loop is left to others for nine times as long. A request for a page that is being
made gets that one; when too many different ones are asked for, more are refused.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from time import thread_time

from eclectus.model.errors import EclectusError

SHARE = 0.1  # of the loop's time that the pages of a path take at most
RETRY_SECONDS = 1.0  # after which a client that was refused asks again, if nothing else is known
MOST_WAITING = 16  # different pages of a path that wait to be made

PageParts = Callable[[Mapping[str, str]], Iterable[bytes]]
"""The parts of a page by its query; each is short. Raises QueryError."""


class QueryError(EclectusError):
    """The query of a page is not valid: the same request never succeeds."""


class BusyError(EclectusError):
    """Too many pages wait to be made: repeat the request after `seconds`."""

    def __init__(self, message: str, seconds: float = RETRY_SECONDS) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(eq=False)
class PageMaker:
    """Makes the pages of one path. `cpu_time` is the time that this thread has worked, seconds."""

    parts: PageParts
    cpu_time: Callable[[], float] = thread_time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        self._making: dict[frozenset[tuple[str, str]], asyncio.Task[bytes]] = {}  # by query
        self._turn = asyncio.Lock()

    async def body(self, query: Mapping[str, str]) -> bytes:
        """The page. Raises QueryError and BusyError."""
        key = frozenset(query.items())
        making = self._making.get(key)
        if making is None:
            if len(self._making) >= MOST_WAITING:
                raise BusyError(f"{MOST_WAITING} other pages wait to be made: ask again later")
            making = self._making[key] = asyncio.create_task(self._made(query))
            making.add_done_callback(lambda _: self._making.pop(key))
        return await asyncio.shield(making)  # others may wait for it too

    async def _made(self, query: Mapping[str, str]) -> bytes:
        async with self._turn:
            body, began = bytearray(), self.cpu_time()
            parts = iter(self.parts(query))
            while (part := next(parts, None)) is not None:
                body += part
                await self.sleep((self.cpu_time() - began) * (1 / SHARE - 1))
                began = self.cpu_time()
            return bytes(body)
