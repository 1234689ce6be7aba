"""Conversion between JSON objects and typed values, and the shape of pod templates.

The API server has validated what it stores, so nothing is validated twice. An object that was stored before
its definition changed may still have another shape; `read` reports it.

Definitions do not know the fields of a pod. A template of another shape than a pod's is rejected before
anything else is checked; the API server validates the rest when the pod is created.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from eclectus.api.common import without_nulls

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
    return read(without_nulls(found), kind)


def written(value: Struct) -> dict[str, Any]:
    """The JSON object of a value, without the fields that are None."""
    content: dict[str, Any] = without_nulls(msgspec.to_builtins(value))
    return content


# -- the shape of a pod template, as far as the operator reads or extends it ---------------------------

Open = dict[str, Any]
Quantities = dict[str, str | int | float]


class _Resources(Struct, frozen=True):
    requests: Quantities = {}
    limits: Quantities = {}


class _Capabilities(Struct, frozen=True):
    add: list[str] = []


class _Security(Struct, frozen=True, rename="camel"):
    privileged: bool = False
    allow_privilege_escalation: bool = False
    capabilities: _Capabilities = _Capabilities()
    run_as_user: int | None = None
    run_as_non_root: bool | None = None
    seccomp_profile: Open | None = None


class _Variable(Struct, frozen=True, rename="camel"):
    value_from: Open = {}


class _Container(Struct, frozen=True, rename="camel"):
    name: str = ""
    image: str = ""
    ports: list[Open] = []
    env: list[_Variable] = []
    resources: _Resources = _Resources()
    security_context: _Security = _Security()


class _Spec(Struct, frozen=True, rename="camel"):
    containers: list[_Container] = []
    init_containers: list[_Container] = []
    volumes: list[Open] = []
    tolerations: list[Open] = []
    security_context: _Security = _Security()
    resources: _Resources = _Resources()


class _Metadata(Struct, frozen=True):
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: list[str] = []


class _Template(Struct, frozen=True):
    spec: _Spec
    metadata: _Metadata = _Metadata()


def shape_problem(template: Open) -> str:
    """The first field that is not of a pod template's shape, and why; empty if there is none."""
    try:
        read(template, _Template)
    except ShapeError as error:
        return str(error)
    return ""
