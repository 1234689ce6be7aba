"""Whether a node matches a pod's nodeSelector and required node affinity, and its taints are tolerated.

Checks the scheduler's decisions, so it shares no code with the scheduler.
"""

from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]
Labels = Mapping[str, str]


def _gt(value: str | None, wanted: list[str]) -> bool:
    return _integers(value, wanted, lambda have, want: have > want)


def _lt(value: str | None, wanted: list[str]) -> bool:
    return _integers(value, wanted, lambda have, want: have < want)


def _integers(value: str | None, wanted: list[str], compare: Callable[[int, int], bool]) -> bool:
    """Compare as integers; a text that is not an integer matches nothing."""
    try:
        return value is not None and len(wanted) == 1 and compare(int(value), int(wanted[0]))
    except ValueError:
        return False


_OPERATORS: dict[str, Callable[[str | None, list[str]], bool]] = {
    "In": lambda value, wanted: value is not None and value in wanted,
    "NotIn": lambda value, wanted: value is None or value not in wanted,
    "Exists": lambda value, _: value is not None,
    "DoesNotExist": lambda value, _: value is None,
    "Gt": _gt,
    "Lt": _lt,
}


def matches_node(spec: Json, name: str, labels: Labels) -> bool:
    """Whether nodeSelector and required node affinity of a pod match this node."""
    if any(labels.get(key) != value for key, value in spec.get("nodeSelector", {}).items()):
        return False
    affinity = spec.get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    # Terms are ORed. An empty list of terms and an empty term match no node.
    return required is None or any(
        _term(term, name, labels) for term in required.get("nodeSelectorTerms", ())
    )


def _term(term: Json, name: str, labels: Labels) -> bool:
    expressions, fields = term.get("matchExpressions", ()), term.get("matchFields", ())
    if not expressions and not fields:
        return False
    return all(_holds(one, labels) for one in expressions) and all(
        _holds(one, {"metadata.name": name}) for one in fields
    )


def _holds(requirement: Json, values: Labels) -> bool:
    test = _OPERATORS[requirement["operator"]]
    return test(values.get(requirement["key"]), requirement.get("values", []))


def tolerates_execution(spec: Json, taints: list[Json]) -> bool:
    """Whether every NoExecute taint is tolerated: the only effect that a kubelet checks."""
    tolerations = spec.get("tolerations", ())
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in taints
        if taint["effect"] == "NoExecute"
    )


def _tolerates(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("key", taint["key"]) != taint["key"]:
        return False
    operator, value = toleration.get("operator", "Equal"), taint.get("value", "")
    wanted = toleration.get("value", "")
    match operator:
        case "Exists":
            return True
        case "Gt":
            return _gt(value, [wanted])
        case "Lt":
            return _lt(value, [wanted])
        case _:
            return "key" in toleration and bool(wanted == value)
