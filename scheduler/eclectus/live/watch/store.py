"""The keys and versions of the objects of one kind, updated by lists and watches. Pure: bytes to events."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from eclectus.kube.decoding import decode_event, decode_head, decode_list, decode_status
from eclectus.kube.envelopes import ListMeta
from eclectus.kubeclient.errors import ApiError, StaleError, UnsureError
from eclectus.live.watch.watched import ObservedObject, WatchedKind
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event


class ObjectStore:
    """Which objects exist, in which version. The objects themselves are kept by the engine.

    `malformed` is called with each object that cannot be read whole. What can be read of it counts; one that
    cannot be decoded at all is skipped. All others are processed.
    """

    def __init__(self, kind: WatchedKind, malformed: Callable[[MalformedError], None]) -> None:
        self.kind = kind
        self.resource_version = ""  # to watch from: of the last list, event or bookmark
        self._malformed = malformed
        self._known: dict[str, str] = {}  # key -> resourceVersion
        self._listed: set[str] = set()  # keys on the pages of the current list

    # -- list ----------------------------------------------------------------------------------

    def start_list(self) -> None:
        """Begin a list: whatever is on none of its pages is gone."""
        self._listed = set()

    def page(self, body: bytes, now: float) -> tuple[ListMeta, list[Event]]:
        """Events for new and changed objects of one page. Raises MalformedError if it is no list."""
        page = decode_list(body)
        events = []
        for raw in page.items or ():
            key, version = self._key(raw)
            self._listed.add(key)
            if self._known.get(key) != version and (observed := self._observe(raw, now)):
                events.append(self._record(observed))
        self.resource_version = page.metadata.resource_version
        return page.metadata, events

    def end_list(self) -> list[Event]:
        """The list is complete: events for the objects that are gone."""
        return [self._gone(key) for key in self._known.keys() - self._listed]

    # -- watch ---------------------------------------------------------------------------------

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
                raise self._stream_error(event.object)

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

    def _stream_error(self, raw: Raw) -> ApiError:
        status = decode_status(raw)
        error = StaleError if status.code == 410 else UnsureError
        return error(self._what, status.code, status.message)

    @property
    def _what(self) -> str:
        return f"WATCH {self.kind.path}"
