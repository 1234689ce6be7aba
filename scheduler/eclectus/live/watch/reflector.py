"""The cluster as a stream of events: list once, then watch from the version of that list.

A watch from any other version would lose the changes in between. When the API server no longer has our
version (410 Gone), everything is listed again and objects missing from the list are reported as gone; a
gap in a watch therefore never requires a restart of the engine.

A kind that a cluster need not define has no objects until it is defined: nothing waits for it, and it is
looked for again at least every 30 s.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import aiohttp

from eclectus.kubeclient.backoff import Backoff
from eclectus.kubeclient.errors import ApiError, MissingError, StaleError
from eclectus.kubeclient.lines import LineCutter, LineTooLongError
from eclectus.kubeclient.trouble import TroubleLog
from eclectus.live.context import Context
from eclectus.live.inbox import Inbox
from eclectus.live.watch.store import ObjectStore
from eclectus.live.watch.watched import WatchedKind
from eclectus.model.errors import MalformedError

PAGE = 500  # objects per page: a page of pods is about 2 MB
LIST_SECONDS = 60.0  # per page; a busy server may be slow, and nothing else waits for it
SILENCE_SECONDS = 90.0  # bookmarks come about every 60 s; a stream that is silent for longer is dead
WATCH_SECONDS = (300, 600)  # duration of a watch, drawn at random so that replicas do not reconnect together
BACKOFF_SECONDS = (0.8, 30.0)  # as in client-go
HEALTHY_SECONDS = 10.0  # a watch that lasted this long resets the back-off

_log = logging.getLogger(__name__)


class Reflector:
    """Lists and watches one kind of object and puts the events into the inbox."""

    def __init__(self, kind: WatchedKind, context: Context, inbox: Inbox, now: Callable[[], float]) -> None:
        self._kind, self._context, self._inbox, self._now = kind, context, inbox, now
        self._path = kind.path  # of the version that is served
        self._backoff = Backoff(*BACKOFF_SECONDS, context.rng)
        self._store = ObjectStore(kind, self._malformed)
        self._trouble = TroubleLog(_log, extra={"kind": kind.name})
        self.synced = asyncio.Event()  # set when the events of the first list are in the inbox

    async def run(self) -> None:
        """List and watch until cancelled. When run again, it lists again and reports what has changed."""
        while True:
            try:
                await self._list()
                self.synced.set()
                await self._follow()
            except StaleError as error:
                seconds = self._count_restart("list again", error)
            except MissingError as error:
                seconds = self._report_undefined(error)
            except (ApiError, MalformedError) as error:
                seconds = self._count_restart("list failed", error)
            await asyncio.sleep(seconds)

    async def _list(self) -> None:
        """Report what exists, page by page, then what is gone."""
        await self._find_version()
        query = {"limit": str(PAGE), **self._kind.list_query}
        self._store.start_list()
        while True:
            body = await self._context.client.get(self._path, query, seconds=LIST_SECONDS)
            page, events = self._store.page(body, self._now())
            await self._inbox.put_all(events)
            if not page.continue_:
                break
            query["continue"] = page.continue_
        await self._inbox.put_all(self._store.end_list())
        self._trouble.succeeded(f"{self._kind.name}: listed again")
        _log.info("%s listed", self._kind.name, extra={"kind": self._kind.name})

    async def _find_version(self) -> None:
        """Take the newest version of the kind's API that is served; raises MissingError if none is."""
        if not self._kind.older_paths:
            return
        for path in (self._kind.path, *self._kind.older_paths):
            self._path = path
            try:
                await self._context.client.get(path, {"limit": "1"}, seconds=LIST_SECONDS)
                return
            except MissingError as error:
                missing = error
        raise missing

    async def _follow(self) -> None:
        """Watch, each time from where the last watch ended, until a new list is needed.

        Raises StaleError, or MissingError.
        """
        while True:
            try:
                await self._watch()
            except (StaleError, MissingError):  # the version of the API may not be served any more
                raise
            except ApiError as error:
                seconds = self._count_restart("watch again", error)
            else:  # its time limit was reached, or the server ends every watch at once
                seconds = self._backoff.wait()
            await asyncio.sleep(seconds)

    async def _watch(self) -> None:
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._store.resource_version,
            "timeoutSeconds": str(self._context.rng.randint(*WATCH_SECONDS)),
        }
        began = self._now()
        async with self._context.client.stream(self._path, query, silence=SILENCE_SECONDS) as body:
            async for lines in _line_batches(body):
                await self._apply(lines)
                if self._now() - began > HEALTHY_SECONDS:
                    self._backoff.reset()
                    self._trouble.succeeded(f"{self._kind.name}: watched again")

    async def _apply(self, lines: list[bytes]) -> None:
        """Put the events of one read into the inbox together."""
        now = self._now()
        events = []
        try:
            for line in lines:
                if (event := self._store.apply(line, now)) is not None:
                    events.append(event)
        finally:  # the lines before an ERROR line are recorded as known and will not be sent again
            await self._inbox.put_all(events)

    def _report_undefined(self, error: MissingError) -> float:
        """The cluster does not define the kind; returns the seconds to wait.

        Objects that were known are not reported as gone: a definition that is deleted deletes them first, and
        a server that is starting may not know its definitions yet.
        """
        if not self._kind.undefined:
            return self._count_restart("list failed", error)
        self.synced.set()
        message = f"{self._kind.name}: not defined in this cluster; {self._kind.undefined}"
        if self._kind.is_expected:
            self._trouble.failed("undefined", message)
        else:
            _log.debug("%s", message, extra={"kind": self._kind.name})
        return self._backoff.wait()

    def _count_restart(self, what: str, error: Exception) -> float:
        """Count and log the restart; returns the seconds to wait: our back-off, or Retry-After if longer."""
        self._context.metrics.watch_restarts.labels(self._kind.name).inc()
        message = f"{self._kind.name}: {what}: {error}"
        if getattr(error, "is_logged", False):
            _log.debug("%s", message, extra={"kind": self._kind.name})
        else:
            self._trouble.failed(f"{what} {type(error).__name__}", message)
        return max(self._backoff.wait(), getattr(error, "retry_after", None) or 0.0)

    def _malformed(self, error: MalformedError) -> None:
        self._context.metrics.malformed_objects.labels(self._kind.name).inc()
        _log.error("object not read whole: %s", error, extra={"kind": self._kind.name})


async def _line_batches(body: aiohttp.StreamReader) -> AsyncIterator[list[bytes]]:
    """The complete lines of each read."""
    cutter = LineCutter()
    async for read in body.iter_any():
        try:
            lines = cutter.feed(read)
        except LineTooLongError as error:
            raise StaleError("WATCH", message=str(error)) from error
        if lines:
            yield lines
