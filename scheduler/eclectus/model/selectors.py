"""Label selectors: whether all requirements of a selector hold for the labels of a pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from eclectus.model.objects import Requirement

Selector = tuple[Requirement, ...]


class PodSelector(Struct, frozen=True, gc=False):
    """The pods of its namespace that a Service or a controller selects."""

    kind: str  # Service, ReplicationController, ReplicaSet or StatefulSet
    namespace: str
    name: str
    selector: Selector  # empty: it selects none


def selects(selector: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether every requirement holds. A selector without requirements selects every pod."""
    return all(_holds(requirement, labels.get(requirement.key)) for requirement in selector)


def _holds(requirement: Requirement, value: str | None) -> bool:
    match requirement.op:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            raise AssertionError(f"a selector on pod labels has no operators on numbers: {requirement}")
