"""Who asks for an explanation, and what of an answer they may read by the API server's word.

An answer leaves out the names of what its reader may not read: pods and work of other namespaces. A pod that
is left out keeps its place, with its priority, so that it still counts; its namespace and name are empty.
What was learned of the work of a namespace is left out with the namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from eclectus.explain.what_if import WhatIfExplanation
from eclectus.kubeclient.serving.access import PERMITTED, AccessControl, Decision, ReadObject, Right
from eclectus.model.explanation import JobExplanation, NodeExplanation, OtherPod, PodExplanation
from eclectus.model.learned import LearnedWork
from eclectus.model.workload_names import EVERYBODY, namespace_of

NAMESPACES_MOST = (
    8  # of one answer about which the API server is asked; the names of further ones are left out
)
EVERY_POD = ReadObject("pods")


class Reader:
    """The sender of one request. Without `access` everybody may read everything."""

    def __init__(self, access: AccessControl | None, token: str) -> None:
        self._access = access
        self._token = token

    async def decision(self, right: Right) -> Decision:
        """Whether the right is given. Raises nothing."""
        return PERMITTED if self._access is None else await self._access.decision(self._token, right)

    async def readable(self, answer: Answer) -> Answer:
        """The answer with the names of those other pods only that may be read.

        A right that could not be found out counts as not given.
        """
        named = sorted(namespaces_named(answer))
        if not named or await self._has(EVERY_POD):
            return answer
        asked = named[:NAMESPACES_MOST]
        given = frozenset([each for each in asked if await self._has(ReadObject("pods", each))])
        return redacted(answer, given.__contains__)

    async def _has(self, right: Right) -> bool:
        return (await self.decision(right)).status == HTTPStatus.OK


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
