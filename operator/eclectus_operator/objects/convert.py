"""Conversion between JSON objects and typed values, and the patches of a NodeProbe's status.

The API server has validated what it stores, so nothing is validated twice. An object that was stored before
its definition changed may still have another shape; `read` reports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eclectus.api.common import ObjectMeta
from eclectus.api.node_probe import NodeProbe, NodeProbeStatus

T = TypeVar("T")


class ShapeError(ValueError):
    """An object has not the shape of its definition: the message names the field and what was expected."""


def read(found: Mapping[str, Any], kind: type[T]) -> T:
    """A typed value from a JSON object. Raises ShapeError."""
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise ShapeError(str(error)) from error


def written(value: Struct) -> dict[str, Any]:
    """The JSON object of a value, without the fields that are None."""
    content: dict[str, Any] = _without_none(msgspec.to_builtins(value))
    return content


def status_patch(probe: NodeProbe, status: NodeProbeStatus) -> dict[str, Any]:
    """A merge patch of the operator's part of the status.

    It carries the resourceVersion, so the API server answers 409 if the object has changed since it was read.
    """
    content = written(replace(status, load=None))
    return {"metadata": {"resourceVersion": probe.metadata.resource_version}, "status": content}


def conditions_patch(meta: ObjectMeta, status: NodeProbeStatus) -> dict[str, Any]:
    """The same for the conditions alone: of an object whose runs cannot be read."""
    content = written(status)
    kept = {name: content[name] for name in ("conditions", "observedGeneration")}
    return {"metadata": {"resourceVersion": meta.resource_version}, "status": kept}


def _without_none(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _without_none(each) for name, each in content.items() if each is not None}
    if isinstance(content, list | tuple):
        return [_without_none(each) for each in content]
    return content
