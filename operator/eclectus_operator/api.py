"""What the operator asks of the API server, and what can go wrong, by what it does next.

ApiError
├── MissingError    404: it is gone, or was never there
├── ConflictError   409: it is not as we thought, or the name is taken: look again
├── RefusedError    another 4xx: the same request will never pass; say so and give up what needed it
├── UnsureError     no answer, 429 or 5xx: done or not, the next look shows it
└── NotLeadingError nothing was sent: another may lead by now
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Object = dict[str, Any]
Query = Mapping[str, str]
PAGE = 500


class ApiError(Exception):
    """A request did not end well; the message has the method, the path and the server's words."""


class MissingError(ApiError):
    """404."""


class ConflictError(ApiError):
    """409."""


class RefusedError(ApiError):
    """The request will never pass."""


class UnsureError(ApiError):
    """Nobody knows whether it was done."""


class NotLeadingError(ApiError):
    """The Lease is not surely ours."""


class Api(Protocol):
    """Requests to the API server. Each raises ApiError."""

    async def send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: Query | None = None,
        *,
        brief: bool = False,
    ) -> Object:
        """One request; a PATCH is a merge patch. `brief`: of each object the metadata alone."""


async def listed(api: Api, path: str, query: Query | None = None) -> list[Object]:
    """All items of a list, page by page."""
    items: list[Object] = []
    asked = {**(query or {}), "limit": str(PAGE)}
    while True:
        page = await api.send("GET", path, query=asked)
        items += page.get("items") or []
        following = page.get("metadata", {}).get("continue")
        if not following:
            return items
        asked["continue"] = following
