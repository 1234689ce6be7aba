"""What objects arrive in: lists, watch events, statuses.

The objects inside stay raw and are decoded one by one, so that a malformed object is reported by name and
does not affect the others.
"""

from __future__ import annotations

from msgspec import Raw, field

from eclectus.kube.objects import Metadata
from eclectus.kube.placement import ApiObject


class ListMeta(ApiObject, frozen=True):
    """metadata of a list; `continue_` is the token of the next page, empty on the last."""

    resource_version: str = ""
    continue_: str = field(name="continue", default="")


class ObjectList(ApiObject, frozen=True):
    """A page of a list, its items still raw."""

    metadata: ListMeta
    items: list[Raw] | None = None  # an empty list may arrive as null


class WatchEvent(ApiObject, frozen=True):
    """One line of a watch, its object still raw: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR."""

    type: str
    object: Raw


class Status(ApiObject, frozen=True):
    """v1 Status: the object of an ERROR event, and the body of an error response."""

    code: int = 0
    reason: str = ""
    message: str = ""


class Head(ApiObject, frozen=True):
    """The metadata of any object; that of a BOOKMARK has a resourceVersion only."""

    metadata: Metadata
