"""An answer without the names of what its reader may not read: pods and work of other namespaces.

A pod that is left out keeps its place, with its priority, so that it still counts; its namespace and name are
empty. What was learned of the work of a namespace is left out with the namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from eclectus.engine.explain.what_if.explanation import WhatIfExplanation
from eclectus.model.explanation import JobExplanation, NodeExplanation, OtherPod, PodExplanation
from eclectus.model.learned import LearnedWork
from eclectus.model.workload_names import EVERYBODY, namespace_of

Answer = PodExplanation | NodeExplanation | JobExplanation | WhatIfExplanation


def namespaces_named(answer: Answer) -> frozenset[str]:
    """The namespaces whose pods or work the answer names, that of the pod asked about left out."""
    return frozenset(_namespaces(answer)) - {EVERYBODY}


def redacted(answer: Answer, may_read: Callable[[str], bool]) -> Answer:
    """The answer with the names of those namespaces alone whose pods may be read."""
    found: Answer = _mapped(answer, lambda namespace: namespace == EVERYBODY or may_read(namespace))
    return found


def _namespaces(value: object) -> Iterator[str]:
    if isinstance(value, OtherPod):
        yield value.namespace
    elif isinstance(value, LearnedWork):
        yield namespace_of(value.workload)
    elif isinstance(value, tuple):
        for each in value:
            yield from _namespaces(each)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _namespaces(getattr(value, name))


def _mapped(value: Any, may_read: Callable[[str], bool]) -> Any:
    if isinstance(value, OtherPod):
        return value if may_read(value.namespace) else replace(value, namespace="", name="")
    if isinstance(value, tuple):
        return tuple(_mapped(each, may_read) for each in value if _is_kept(each, may_read))
    if isinstance(value, Struct):
        fields = {name: _mapped(getattr(value, name), may_read) for name in value.__struct_fields__}
        return type(value)(**fields)
    return value


def _is_kept(value: object, may_read: Callable[[str], bool]) -> bool:
    return not isinstance(value, LearnedWork) or may_read(namespace_of(value.workload))
