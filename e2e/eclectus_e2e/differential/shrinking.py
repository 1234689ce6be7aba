"""Smaller cases that still differ: without some of the objects, then without fields of what is left."""

from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

from eclectus_e2e.differential.case import Case, Object

# An object is none without them; and a pod without its node would be put to a scheduler.
_KEPT = {"metadata", "name", "spec", "status", "allocatable", "containers", "nodeName"}
Path = tuple[str | int, ...]


async def shrink(case: Case, still_differs: Callable[[Case], Awaitable[bool]], attempts: int) -> Case:
    """The smallest case found with so many questions at most; the given one if none is smaller.

    Leaves out halves of the objects, then ever fewer, then single fields. What could not be left out once is
    not tried again.
    """
    for smaller in _stages(len(case.objects)):
        at = 0
        while attempts and at < len(found := smaller(case)):
            attempts -= 1
            if await still_differs(found[at]):
                case = found[at]
            else:
                at += 1
    return case


def _stages(count: int) -> Iterator[Callable[[Case], list[Case]]]:
    while count := count // 2:
        yield partial(_without_some, count)
    yield _without_fields


def _without_some(size: int, case: Case) -> list[Case]:
    paths = [*case.objects]
    return [_without(case, set(paths[at : at + size])) for at in range(0, len(paths), size)]


def _without_fields(case: Case) -> list[Case]:
    found = [replace(case, pod=_cut(case.pod, field)) for field in _fields(case.pod)]
    for path, each in case.objects.items():
        found += [replace(case, objects={**case.objects, path: _cut(each, field)}) for field in _fields(each)]
    return found


def _without(case: Case, dropped: set[str]) -> Case:
    """Without these objects, and without the pods on nodes among them."""
    nodes = {path.rpartition("/")[2] for path in dropped if path.startswith("/api/v1/nodes/")}
    left = {
        path: each
        for path, each in case.objects.items()
        if path not in dropped and each.get("spec", {}).get("nodeName") not in nodes
    }
    return replace(case, objects=left)


def _fields(value: Any, path: Path = ()) -> Iterator[Path]:
    """Paths of what can be left out of an object, the outermost first."""
    if isinstance(value, dict):
        children: list[tuple[str | int, Any]] = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    else:
        return
    for key, _ in children:
        if key not in _KEPT:
            yield (*path, key)
    for key, child in children:
        yield from _fields(child, (*path, key))


def _cut(value: Object, path: Path) -> Object:
    cut = deepcopy(value)
    inner: Any = cut
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return cut
