"""Conversion between JSON objects and typed values, and the patch of an object's status.

The API server has validated what it stores, so nothing is validated twice. An object that was stored before
its definition changed may still have another shape; `read` reports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")


class ShapeError(ValueError):
    """An object has not the shape of its definition: the message names the field and what was expected."""


def read(found: Mapping[str, Any], kind: type[T]) -> T:
    """A typed value from a JSON object. Raises ShapeError."""
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise ShapeError(str(error)) from error


def read_authored(found: Mapping[str, Any], kind: type[T]) -> T:
    """The same of an object that users write: null means not set, as in all of Kubernetes. Raises ShapeError.

    In a pod template, whose fields its definition does not know, the API server keeps a null.
    """
    return read(_without_none(found), kind)


def written(value: Struct) -> dict[str, Any]:
    """The JSON object of a value, without the fields that are None."""
    content: dict[str, Any] = _without_none(msgspec.to_builtins(value))
    return content


def _without_none(content: Any) -> Any:
    """JSON content without the fields that are null."""
    if isinstance(content, dict):
        return {name: _without_none(each) for name, each in content.items() if each is not None}
    if isinstance(content, list | tuple):
        return [_without_none(each) for each in content]
    return content
