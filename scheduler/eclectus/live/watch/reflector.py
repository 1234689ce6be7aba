"""The cluster as a stream of events: list once, then watch from the version of that list.

A watch from any other version would lose the changes in between. When the API server no longer has our
version (410 Gone), everything is listed again and objects missing from the list are reported as gone; a
gap in a watch therefore never requires a restart of the engine.

A new leader has to know all that its predecessor has done. Where there are many objects it does not list them
again, but watches on until it has passed the version of a consistent read, made since it leads: then it knows
what a list in place of that read would have shown.

A kind that a cluster need not define has no objects until it is defined: nothing waits for it, and it is
looked for again at least every 30 s.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from math import inf

from msgspec import Raw, Struct, field

from eclectus.framework import Need
from eclectus.kube.objects import ObjectList, decode_event, decode_head, decode_list, decode_status
from eclectus.kubeclient.api_errors import ApiError, MissingError, StaleError, UnsureError
from eclectus.kubeclient.client import MAX_LINE_BYTES, decoded_pages
from eclectus.kubeclient.timing import Backoff, TroubleLog
from eclectus.kubeclient.transport import Body
from eclectus.live.inbox import Inbox
from eclectus.live.process_metrics import Context
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event, Paused

LIST_SECONDS = 60.0  # per page: kube-apiserver's own limit; sooner, a busy one would do the same work again
SILENCE_SECONDS = 90.0  # bookmarks come about every 60 s; a stream that is silent for longer is dead
WATCH_SECONDS = (300, 600)  # duration of a watch, drawn at random so that replicas do not reconnect together
# Of a watch that is to pass a version soon: 2 s before its end kube-apiserver says which one it has passed.
SHORT_WATCH_SECONDS = (3, 3)
CATCH_UP_SECONDS = 4.0  # for that; then a list is made
FEW_OBJECTS = 1_000  # are listed in less time than such a watch takes
BACKOFF_SECONDS = (0.8, 30.0)  # as in client-go
SETTLED_SECONDS = 0.5  # of an open watch: one from a version that is gone is refused at once, in its stream
HEALTHY_SECONDS = 10.0  # a watch that lasted this long resets the back-off

_log = logging.getLogger(__name__)


class ObservedObject(Struct, frozen=True, gc=False):
    """One observation of an object, from a list or a watch."""

    key: str
    resource_version: str
    event: Event
    # False for an ended pod: lists leave it out, so its absence is no deletion. And for what says nothing.
    is_listed: bool = True
    problem: MalformedError | None = None  # what cannot be read of it, and does not count


class WatchedKind(Struct, frozen=True):
    """One kind of object: where it is listed, and which events its objects become."""

    name: str  # of the resource, for messages and metrics
    path: str
    key: Callable[[Raw], tuple[str, str]]
    """(key, resourceVersion) of an object, even if the rest of it is malformed. Raises MalformedError."""
    observe: Callable[[Raw, float], ObservedObject]
    """The object as observed at a time (seconds). Raises MalformedError."""
    gone: Callable[[str], Event]
    """The event of the deletion of the object with this key."""
    listing: Event | None = None  # says that a new list begins
    need: Need | None = None  # of policies without which the kind is not watched; None: it always is
    older_paths: tuple[str, ...] = ()  # of earlier versions of its API, newest first, if `path` is not served
    list_query: Mapping[str, str] = field(default_factory=dict)  # restricts the list, not the watch
    undefined: str = ""  # what happens in a cluster that does not define the kind; empty: every cluster does
    must_be_current: bool = False  # whether nothing is decided while it is listed again
    is_expected: bool = True  # whether a cluster that does not define it is worth a warning


class Reflector:
    """Lists and watches one kind of object and puts the events into the inbox."""

    def __init__(self, kind: WatchedKind, context: Context, inbox: Inbox, now: Callable[[], float]) -> None:
        self._kind = kind
        self._context = context
        self._inbox = inbox
        self._now = now
        self._path = kind.path  # of the version that is served
        self._backoff = Backoff(*BACKOFF_SECONDS, context.rng)
        self._store = ObjectStore(kind, self._malformed)
        self._trouble = TroubleLog(_log, extra={"kind": kind.name})
        # Set when what existed at some time since the beginning of `run` is in the inbox.
        self.synced = asyncio.Event()
        self.is_stale = False  # nothing is to be decided until the new list is complete
        self.stale_times = 0  # that it was; both written here only
        self._watched_since = inf  # when the watch that is open was answered, seconds; inf for none

    async def run(self) -> None:
        """List and watch until cancelled. When run again, it catches up, or lists if that is sooner."""
        is_current = await self._catch_up()
        while True:
            try:
                if not is_current:
                    await self._list()
                is_current = self.is_stale = False
                self.synced.set()
                await self._follow()
            except StaleError as error:
                if self._kind.must_be_current:
                    self._become_stale()
                seconds = self._count_restart("list again", error)
            except MissingError as error:
                seconds = self._report_undefined(error)
            except (ApiError, MalformedError) as error:
                seconds = self._count_restart("list failed", error)
            await asyncio.sleep(seconds)

    def is_current(self) -> bool:
        """Whether changes are seen as they come, or need not be: a watch is open, and was not refused."""
        return not self._kind.must_be_current or self._watched_since + SETTLED_SECONDS <= self._now()

    def _become_stale(self) -> None:
        """Have nothing decided until the new list is complete: etcd may have been restored."""
        self.is_stale = True
        self.stale_times += 1
        self._inbox.put(Paused())

    async def _catch_up(self) -> bool:
        """Watch on past a consistent read; whether that was possible, and sooner than a list.

        That read also moves on what kube-apiserver says of a watch without events. Versions of a kind are
        integers that grow, unless etcd was restored.
        """
        if self._store.known_objects() <= FEW_OBJECTS or not self._store.resource_version:
            return False
        try:
            async with asyncio.timeout(CATCH_UP_SECONDS):
                read = decode_list(await self._context.client.get(self._path, {"limit": "1"}))
                known, wanted = int(self._store.resource_version), int(read.metadata.resource_version)
                if known < wanted:
                    await self._watch(SHORT_WATCH_SECONDS, until=wanted)
                is_current = known <= wanted <= int(self._store.resource_version)
        except (ApiError, MalformedError, TimeoutError, ValueError) as error:
            _log.debug("%s: listing again: %r", self._kind.name, error)
            return False
        if is_current:
            _log.info("%s caught up", self._kind.name, extra={"kind": self._kind.name})
        return is_current

    async def _list(self) -> None:
        """Report what exists, page by page, then what is gone."""
        await self._find_version()
        self._store.start_list()
        if self._kind.listing is not None:
            await self._inbox.put_all([self._kind.listing])
        client, query = self._context.client, self._kind.list_query
        async for page in decoded_pages(client, self._path, query, decode_list, LIST_SECONDS):
            await self._inbox.put_all(self._store.page(page, self._now()))
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
        """Watch on and on until a new list is needed. Raises StaleError, or MissingError."""
        while True:
            try:
                await self._watch(WATCH_SECONDS)
            except (StaleError, MissingError):  # the version of the API may not be served any more
                raise
            except ApiError as error:
                seconds = self._count_restart("watch again", error)
            else:  # its time limit was reached, or the server ends every watch at once
                seconds = self._backoff.wait()
            await asyncio.sleep(seconds)

    async def _watch(self, seconds: tuple[int, int], until: int | None = None) -> None:
        """Watch for some time, or until a version is passed and what led to it is in the inbox."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._store.resource_version,
            "timeoutSeconds": str(self._context.rng.randint(*seconds)),
        }
        began = self._now()
        async with self._context.client.stream(self._path, query, silence=SILENCE_SECONDS) as body:
            self._watched_since = self._now()
            try:
                await self._read(body, began, until)
            finally:
                self._watched_since = inf

    async def _read(self, body: Body, began: float, until: int | None) -> None:
        """Apply what a watch sends that was requested at a time, until it ends or a version is passed."""
        cutter = LineCutter()
        async for read in body.iter_any():
            if not (lines := cutter.feed(read)):
                continue
            await self._apply(lines)
            if until is not None and int(self._store.resource_version) >= until:
                return
            if self._now() - began > HEALTHY_SECONDS:
                self._backoff.reset()
                self._trouble.succeeded(f"{self._kind.name}: watched again")

    async def _apply(self, lines: list[bytes]) -> None:
        """Put the events of one read into the inbox together."""
        now, events = self._now(), list[Event]()
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


class ObjectStore:
    """Which objects exist, in which version. The objects themselves are kept by the engine.

    `malformed` is called with each object that cannot be read whole. What can be read of it counts; one that
    cannot be decoded at all is skipped. All others are processed.
    """

    def __init__(self, kind: WatchedKind, malformed: Callable[[MalformedError], None]) -> None:
        self.kind = kind
        self._what = f"WATCH {kind.path}"
        # To watch from: of the last list, event or bookmark; empty until a list is complete.
        self.resource_version = ""
        self._malformed = malformed
        self._known: dict[str, str] = {}  # key -> resourceVersion
        self._listed: set[str] = set()  # keys on the pages of the current list
        self._listed_at = ""  # its version

    def known_objects(self) -> int:
        """How many objects a list would show."""
        return len(self._known)

    def start_list(self) -> None:
        """Begin a list: whatever is on none of its pages is gone."""
        self._listed, self.resource_version = set(), ""

    def page(self, page: ObjectList, now: float) -> list[Event]:
        """Events for new and changed objects of one page."""
        events = []
        for raw in page.items or ():
            key, version = self._key(raw)
            self._listed.add(key)
            if self._known.get(key) != version and (observed := self._observe(raw, now)):
                events.append(self._record(observed))
        self._listed_at = page.metadata.resource_version
        return events

    def end_list(self) -> list[Event]:
        """The list is complete: events for the objects that are gone."""
        self.resource_version = self._listed_at
        return [self._gone(key) for key in self._known.keys() - self._listed]

    def apply(self, line: bytes, now: float) -> Event | None:
        """The event of one line of a watch, or None. Raises StaleError (list again), UnsureError."""
        try:
            event = decode_event(line)
        except MalformedError as error:  # some object has changed, and only a list can show which
            raise StaleError(self._what, message=str(error)) from error
        match event.type:
            case "ADDED" | "MODIFIED":
                return self._changed(event.object, now)
            case "DELETED":
                key, self.resource_version = self._key(event.object)
                return self._gone(key)
            case "BOOKMARK":
                self.resource_version = decode_head(event.object).metadata.resource_version
                return None
            case _:
                status = decode_status(event.object)
                kind = StaleError if status.code == 410 else UnsureError
                raise kind(self._what, status.code, status.message)

    def _changed(self, raw: Raw, now: float) -> Event | None:
        observed = self._observe(raw, now)
        # Decoding the metadata alone is a second pass, so it is done for malformed objects only.
        self.resource_version = self._key(raw)[1] if observed is None else observed.resource_version
        return None if observed is None else self._record(observed)

    def _observe(self, raw: Raw, now: float) -> ObservedObject | None:
        try:
            observed = self.kind.observe(raw, now)
        except MalformedError as error:
            self._malformed(error)
            return None
        if observed.problem is not None:
            self._malformed(observed.problem)
        return observed

    def _record(self, observed: ObservedObject) -> Event:
        if observed.is_listed:
            self._known[observed.key] = observed.resource_version
        else:
            self._known.pop(observed.key, None)
        return observed.event

    def _gone(self, key: str) -> Event:
        self._known.pop(key, None)
        return self.kind.gone(key)

    def _key(self, raw: Raw) -> tuple[str, str]:
        try:
            return self.kind.key(raw)
        except MalformedError as error:  # an object without a key cannot be tracked: list again
            raise StaleError(self._what, message=str(error)) from error


class LineCutter:
    """Takes reads of any size and returns whole lines; the parts of a line are joined once, at its end."""

    def __init__(self, longest: int = MAX_LINE_BYTES) -> None:
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._longest = longest

    def feed(self, read: bytes) -> list[bytes]:
        """The lines that this read completes, without ends and empty ones. Raises StaleError if too long."""
        head, end, rest = read.partition(b"\n")
        self._hold(head)
        if not end:
            return []
        *lines, tail = rest.split(b"\n")
        lines.insert(0, b"".join(self._parts))
        self._parts, self._held_bytes = [], 0
        self._hold(tail)
        return [line for line in lines if line]

    def _hold(self, part: bytes) -> None:
        self._held_bytes += len(part)
        if self._held_bytes > self._longest:
            raise StaleError("WATCH", message=f"a line of more than {self._longest} bytes")
        if part:
            self._parts.append(part)
