"""What objects arrive in: lists, watch events, refusals.

Objects inside stay raw bytes until asked for one by one, so that a malformed object is reported by name
and costs nobody else anything.
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
    """v1 Status: the object of an ERROR event and the body of a refusal."""

    code: int = 0
    reason: str = ""
    message: str = ""


class Head(ApiObject, frozen=True):
    """Any object, its metadata alone; the object of a BOOKMARK has nothing but a resourceVersion."""

    metadata: Metadata
