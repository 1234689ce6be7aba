"""The shape of a pod template, as far as the operator reads or extends it.

The definition of NodeProbe does not know the fields of a pod. A template of another shape than a pod's is
rejected before anything else is checked; the API server validates the rest when the pod is created.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from eclectus_operator import convert

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
        convert.read(template, _Template)
    except convert.ShapeError as error:
        return str(error)
    return ""
