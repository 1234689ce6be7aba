"""The cluster as a stream of events: list once, then watch from that list's version.

The other order, or a watch from any other version, loses what changed in between. When the server no
longer remembers our version (410), everything is listed again, and what is missing from the list is
told as gone; so no gap in a watch ever needs the engine to stop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import aiohttp

from eclectus.kubeclient.backoff import Backoff
from eclectus.kubeclient.errors import ApiError, StaleError
from eclectus.kubeclient.lines import LineCutter, LineTooLongError
from eclectus.live.context import Means
from eclectus.live.inbox import Inbox
from eclectus.live.watch.store import Mirror
from eclectus.live.watch.watched import Kind
from eclectus.model.errors import MalformedError

PAGE = 500  # objects a page: a page of pods is about 2 MB
LIST_SECONDS = 60.0  # a page of a busy server may take long; nothing else waits for it
SILENCE_SECONDS = 90.0  # bookmarks come about every 60 s; a stream more silent than this is dead
WATCH_SECONDS = (300, 600)  # how long a watch may last: drawn, so that replicas do not reconnect together
BACKOFF_SECONDS = (0.8, 30.0)  # client-go's
HEALTHY_SECONDS = 10.0  # a watch that lasted so long was no failure: the next wait is a short one

_log = logging.getLogger(__name__)


class Reflector:
    """Lists and watches one kind for ever, and tells the inbox."""

    def __init__(self, kind: Kind, means: Means, inbox: Inbox, now: Callable[[], float]) -> None:
        self._kind, self._means, self._inbox, self._now = kind, means, inbox, now
        self._backoff = Backoff(*BACKOFF_SECONDS, means.rng)
        self._mirror = Mirror(kind, self._malformed)
        self.synced = asyncio.Event()  # set when the first list has been told

    async def run(self) -> None:
        """Follow the kind until cancelled. Run again, it lists again and tells what has changed since."""
        while True:
            try:
                await self._list()
                self.synced.set()
                await self._follow()
            except StaleError as error:
                seconds = self._restarts("list again", error)
            except (ApiError, MalformedError) as error:
                seconds = self._restarts("list failed", error)
            await asyncio.sleep(seconds)

    async def _list(self) -> None:
        """Tell, page by page, what is there; then what is gone."""
        query = {"limit": str(PAGE), **self._kind.listing}
        self._mirror.start_list()
        while True:
            body = await self._means.client.get(self._kind.path, query, seconds=LIST_SECONDS)
            page, events = self._mirror.page(body, self._now())
            await self._inbox.offer(events)
            if not page.continue_:
                break
            query["continue"] = page.continue_
        await self._inbox.offer(self._mirror.end_list())
        _log.info("%s listed", self._kind.name, extra={"kind": self._kind.name})

    async def _follow(self) -> None:
        """Watch, and watch again from where the last watch ended, until only a list can help (StaleError)."""
        while True:
            try:
                await self._watch()
            except StaleError:
                raise
            except ApiError as error:
                seconds = self._restarts("watch again", error)
            else:  # its time was up; or the server ends watches as fast as we ask for them
                seconds = self._backoff.wait()
            await asyncio.sleep(seconds)

    async def _watch(self) -> None:
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._mirror.version,
            "timeoutSeconds": str(self._means.rng.randint(*WATCH_SECONDS)),
        }
        began = self._now()
        async with self._means.client.stream(self._kind.path, query, silence=SILENCE_SECONDS) as body:
            async for lines in _reads(body):
                await self._tell(lines)
                if self._now() - began > HEALTHY_SECONDS:
                    self._backoff.reset()

    async def _tell(self, lines: list[bytes]) -> None:
        """One put a read, not one an event."""
        now = self._now()
        events = []
        try:
            for line in lines:
                if (event := self._mirror.heard(line, now)) is not None:
                    events.append(event)
        finally:  # what came before an ERROR line has happened, and will not be told again
            await self._inbox.offer(events)

    def _restarts(self, what: str, error: Exception) -> float:
        """Count and log it; seconds to wait: our own wait, or what the server asked for if that is longer."""
        self._means.metrics.watch_restarts.labels(self._kind.name).inc()
        _log.warning("%s: %s: %s", self._kind.name, what, error, extra={"kind": self._kind.name})
        return max(self._backoff.wait(), getattr(error, "retry_after", None) or 0.0)

    def _malformed(self, error: MalformedError) -> None:
        self._means.metrics.malformed_objects.labels(self._kind.name).inc()
        _log.error("skipped: %s", error, extra={"kind": self._kind.name})


async def _reads(body: aiohttp.StreamReader) -> AsyncIterator[list[bytes]]:
    """The lines of each read."""
    cutter = LineCutter()
    async for read in body.iter_any():
        try:
            lines = cutter.feed(read)
        except LineTooLongError as error:
            raise StaleError("WATCH", message=str(error)) from error
        if lines:
            yield lines
