"""What we know of one kind of object, and what lists and watches add. Pure: bytes in, events out."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from eclectus.kube.decoding import decode_event, decode_head, decode_list, decode_status
from eclectus.kube.envelopes import ListMeta
from eclectus.kubeclient.errors import ApiError, StaleError, UnsureError
from eclectus.live.watch.watched import Kind, Sight
from eclectus.model.errors import MalformedError
from eclectus.model.events import Event


class Mirror:
    """The keys and versions of what is there; no objects: those live in the engine."""

    def __init__(self, kind: Kind, malformed: Callable[[MalformedError], None]) -> None:
        self.kind = kind
        self.version = ""  # to watch from: of the last list, event or bookmark
        self._malformed = malformed  # told of every object that cannot be read; the rest goes on
        self._known: dict[str, str] = {}
        self._listed: set[str] = set()

    # -- list ----------------------------------------------------------------------------------

    def start_list(self) -> None:
        """A list begins anew: whatever is not in it will be gone."""
        self._listed = set()

    def page(self, body: bytes, now: float) -> tuple[ListMeta, list[Event]]:
        """A page of the list: what is new or changed. Raises MalformedError when the page is no list."""
        page = decode_list(body)
        events = []
        for raw in page.items or ():
            key, version = self._key(raw)
            self._listed.add(key)
            if self._known.get(key) != version and (sight := self._sight(raw, now)):
                events.append(self._noted(sight))
        self.version = page.metadata.resource_version
        return page.metadata, events

    def end_list(self) -> list[Event]:
        """The list is whole: what is gone."""
        return [self._gone(key) for key in self._known.keys() - self._listed]

    # -- watch ---------------------------------------------------------------------------------

    def heard(self, line: bytes, now: float) -> Event | None:
        """What a watch line says, None for nothing new. Raises StaleError (list again), UnsureError."""
        try:
            heard = decode_event(line)
        except (
            MalformedError
        ) as error:  # something has happened and we cannot know to whom: only a list tells
            raise StaleError(self._what, message=str(error)) from error
        match heard.type:
            case "ADDED" | "MODIFIED":
                return self._watched(heard.object, now)
            case "DELETED":
                key, self.version = self._key(heard.object)
                return self._gone(key)
            case "BOOKMARK":
                self.version = decode_head(heard.object).metadata.resource_version
                return None
            case _:
                raise self._stream_error(heard.object)

    def _watched(self, raw: Raw, now: float) -> Event | None:
        sight = self._sight(raw, now)
        # Reading the head alone is a second reading, so only for what cannot be read whole.
        self.version = self._key(raw)[1] if sight is None else sight.version
        return None if sight is None else self._noted(sight)

    def _sight(self, raw: Raw, now: float) -> Sight | None:
        try:
            return self.kind.seen(raw, now)
        except MalformedError as error:
            self._malformed(error)
            return None

    def _noted(self, sight: Sight) -> Event:
        if sight.kept:
            self._known[sight.key] = sight.version
        else:
            self._known.pop(sight.key, None)
        return sight.event

    def _gone(self, key: str) -> Event:
        self._known.pop(key, None)
        return self.kind.gone(key)

    def _key(self, raw: Raw) -> tuple[str, str]:
        try:
            return self.kind.key(raw)
        except MalformedError as error:  # nameless: nothing can be said of it, and nothing after it is safe
            raise StaleError(self._what, message=str(error)) from error

    def _stream_error(self, raw: Raw) -> ApiError:
        status = decode_status(raw)
        kind = StaleError if status.code == 410 else UnsureError
        return kind(self._what, status.code, status.message)

    @property
    def _what(self) -> str:
        return f"WATCH {self.kind.path}"
