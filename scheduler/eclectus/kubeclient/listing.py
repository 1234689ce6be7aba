"""Lists and watches, read in pieces of a bounded number of objects and of bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol, TypeVar

from eclectus.api.common import ListMeta
from eclectus.kubeclient.api_errors import TooLargeError
from eclectus.kubeclient.client import ApiClient, Object, ObjectApi, Query

MAX_LINE_BYTES = 16 * 2**20  # etcd refuses objects above 1.5 MiB, so no watch event is longer


class LineTooLongError(ValueError):
    """The line is longer than any watch event."""


class LineCutter:
    """Takes reads of any size and returns whole lines; the parts of a line are joined once, at its end."""

    def __init__(self, longest: int = MAX_LINE_BYTES) -> None:
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._longest = longest

    def feed(self, read: bytes) -> list[bytes]:
        """The lines that this read completes, without their ends and without empty ones.

        Raises LineTooLongError.
        """
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
            raise LineTooLongError(f"a line of more than {self._longest} bytes")
        if part:
            self._parts.append(part)


PAGE_ITEMS = 500  # as in client-go
PAGE_BYTES = 4 * 2**20  # of JSON, which takes up to ten times as much memory when it is decoded


class Page(Protocol):
    """A decoded page of a list."""

    @property
    def metadata(self) -> ListMeta:
        """Where the list goes on."""


AnyPage = TypeVar("AnyPage", bound=Page)


async def decoded_pages(
    client: ApiClient, path: str, limit: str, decode: Callable[[bytes], AnyPage]
) -> AsyncIterator[AnyPage]:
    """The pages of a list, of at most so many objects. Raises ApiError, and what `decode` raises."""
    query = {"limit": limit}
    while True:
        page = decode(await client.get(path, query))
        yield page
        if not page.metadata.continue_:
            return
        query["continue"] = page.metadata.continue_


async def list_objects(
    api: ObjectApi, path: str, query: Query | None = None, *, metadata_only: bool = False
) -> list[Object]:
    """All items of a list, read page by page; `metadata_only`: without specs. Raises ApiError."""
    pages = list_pages(api, path, query, metadata_only=metadata_only)
    return [each async for page in pages for each in page]


async def list_pages(
    api: ObjectApi, path: str, query: Query | None = None, *, metadata_only: bool = False
) -> AsyncIterator[list[Object]]:
    """The same, one page at a time, for lists too long to be held.

    A page has at most PAGE_ITEMS objects, or as many as `limit` in the query, and PAGE_BYTES of JSON: one
    that is larger is asked for again with half as many objects, and then a few more with each page. A single
    object may be larger. Raises ApiError.
    """
    most = limit = int((query or {}).get("limit", PAGE_ITEMS))
    page_query = dict(query or {})
    while True:
        page_query["limit"] = str(limit)
        most_bytes = PAGE_BYTES if limit > 1 else MAX_LINE_BYTES
        try:
            page = await api.send(
                "GET", path, query=page_query, metadata_only=metadata_only, most_bytes=most_bytes
            )
        except TooLargeError:
            if limit == 1:
                raise
            limit //= 2
            continue
        yield page.get("items") or []
        token = page.get("metadata", {}).get("continue")
        if not token:
            return
        page_query["continue"] = token
        limit = min(limit + limit // 8 + 1, most)
