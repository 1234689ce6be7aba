"""What evictions cost by kube-scheduler's criteria, computed from the objects of a cluster alone.

Written from the documentation of preemption, apart from Eclectus' own: which is the cheaper of two choices
is judged by neither scheduler.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from eclectus_e2e.differential.generator.words import PRIORITY_CLASSES

Object = dict[str, Any]
Cost = tuple[int, int, int, int, str]
"""Violated budgets, highest priority, sum of priorities (each raised above 0), number, and the earliest start
of those of the highest priority. Each but the last is better the smaller it is, the last the later it is."""
_RAISED = 2**31


def cost(objects: Mapping[str, Object], victims: Iterable[str], preemptor: Object) -> Cost:
    """Of the eviction of pods on one node, given by their paths."""
    evicted = {path: objects[path] for path in victims}
    violating = _violating(objects, next(iter(evicted.values()))["spec"]["nodeName"], priority(preemptor))
    priorities = [priority(each) for each in evicted.values()]
    highest = max(priorities)
    return (
        len(violating & evicted.keys()),
        highest,
        sum(each + _RAISED for each in priorities),
        len(evicted),
        min(_start(each) for each in evicted.values() if priority(each) == highest),
    )


def priority(pod: Object) -> int:
    """By its class; 0 without one."""
    name = pod["spec"].get("priorityClassName")
    return int(PRIORITY_CLASSES[name]["value"]) if name else 0


def nodes_of(objects: Mapping[str, Object], victims: Iterable[str]) -> frozenset[str]:
    """The nodes of pods that are given by their paths."""
    return frozenset(objects[path]["spec"]["nodeName"] for path in victims)


def has_pods_of_several_budgets(objects: Mapping[str, Object]) -> bool:
    """Whether more than one budget protects some pod."""
    budgets = [(path, each) for path, each in objects.items() if "/poddisruptionbudgets/" in path]
    return any(
        sum(_protects(*budget, path, each) for budget in budgets) > 1
        for path, each in objects.items()
        if "/pods/" in path
    )


def _violating(objects: Mapping[str, Object], node: str, below: int) -> set[str]:
    """Paths of the pods on a node whose eviction violates a budget, if all of lower priority are evicted."""
    lower = [
        (path, each)
        for path, each in objects.items()
        if "/pods/" in path and each["spec"]["nodeName"] == node and priority(each) < below
    ]
    lower.sort(key=lambda item: (-priority(item[1]), _start(item[1])))
    budgets = {path: each for path, each in objects.items() if "/poddisruptionbudgets/" in path}
    allowed = {path: each["status"].get("disruptionsAllowed", 0) for path, each in budgets.items()}
    found = set()
    for path, pod in lower:
        for name in [name for name, each in budgets.items() if _protects(name, each, path, pod)]:
            allowed[name] -= 1
            if allowed[name] < 0:
                found.add(path)
    return found


def _protects(path: str, budget: Object, pod_path: str, pod: Object) -> bool:
    wanted = budget["spec"].get("selector", {}).get("matchLabels", {}).items()
    is_selected = bool(wanted) and wanted <= pod["metadata"].get("labels", {}).items()
    return is_selected and _namespace(path) == _namespace(pod_path)


def _start(pod: Object) -> str:
    """When the kubelet has accepted the pod; one that it has not counts as the youngest."""
    return str(pod["status"].get("startTime", "not yet"))


def _namespace(path: str) -> str:
    return path.split("/")[-3]
