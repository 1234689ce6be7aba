"""API objects from JSON, with errors that name the object and the field."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Raw, ValidationError
from msgspec.json import Decoder

from eclectus.api.common import NOT_JSON, read_json
from eclectus.kube.envelopes import Head, ObjectList, Status, WatchEvent
from eclectus.kube.objects import Node, Pod, full_name
from eclectus.kube.placement import ApiObject
from eclectus.model.errors import MalformedError

_T = TypeVar("_T")


def decode_pod(raw: bytes | Raw) -> Pod:
    """A Pod. Raises MalformedError naming the pod and the field."""
    return decode(_POD, "Pod", raw)


def decode_node(raw: bytes | Raw) -> Node:
    """A Node. Raises MalformedError naming the node and the field."""
    return decode(_NODE, "Node", raw)


def decode_list(raw: bytes) -> ObjectList:
    """A page of a list. Raises MalformedError if the page itself is malformed."""
    return decode(_LIST, "List", raw)


def decode_event(line: bytes) -> WatchEvent:
    """A line of a watch. Raises MalformedError if the line itself is malformed."""
    return decode(_EVENT, "WatchEvent", line)


def decode_status(raw: bytes | Raw) -> Status:
    """A Status. Raises MalformedError if it is none."""
    return decode(_STATUS, "Status", raw)


def decode_head(raw: bytes | Raw) -> Head:
    """The metadata of any object. Raises MalformedError naming the field."""
    return decode(_HEAD, "Object", raw)


_POD, _NODE, _LIST = Decoder(Pod), Decoder(Node), Decoder(ObjectList)
_EVENT, _STATUS, _HEAD = Decoder(WatchEvent), Decoder(Status), Decoder(Head)


class _Name(ApiObject, frozen=True):
    name: str = "?"
    namespace: str = ""


class _Named(ApiObject, frozen=True):
    metadata: _Name = _Name()


_NAMED = Decoder(_Named)


def decode(decoder: Decoder[_T], kind: str, raw: bytes | Raw) -> _T:
    """An object of this kind. Raises MalformedError naming the object and the field."""
    try:
        return read_json(decoder.decode, raw)
    except ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        raise MalformedError(kind, _name_of(raw), path.rstrip("`").lstrip("."), problem) from error
    except NOT_JSON as error:
        raise MalformedError(kind, "?", "", f"not valid JSON: {error}") from error


def _name_of(raw: bytes | Raw) -> str:
    try:
        metadata = read_json(_NAMED.decode, raw).metadata
    except NOT_JSON:  # the name is malformed too; the caller raises the error of the object
        return "?"
    return full_name(metadata.namespace, metadata.name)
