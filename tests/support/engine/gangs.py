"""PodGroups and the pods that name them: `group("g", 3)`, `members("g", 3, cpu=2)`."""

from __future__ import annotations

from typing import Any

from builders import make_task
from eclectus.model.events import GangGone, GangSeen
from eclectus.model.objects import Gang, GangKey, Task

API = "scheduling.k8s.io"


def key(name: str = "g") -> GangKey:
    """The PodGroup of this name in the namespace of `make_task`."""
    return GangKey(API, "default", name)


def group(name: str = "g", minimum: int = 1) -> GangSeen:
    """The PodGroup exists, and so many of its pods start together."""
    return GangSeen(Gang(key(name), minimum))


def no_group(name: str = "g") -> GangGone:
    """The PodGroup does not exist any more."""
    return GangGone(key(name))


def members(name: str = "g", count: int = 1, first: int = 0, **fields: Any) -> list[Task]:
    """Pods g0, g1, … of the PodGroup, created one second after the other."""
    numbers = range(first, first + count)
    return [make_task(f"{name}{at}", created=float(at), gang=key(name), **fields) for at in numbers]
