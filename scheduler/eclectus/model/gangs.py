"""Gangs: pods that start together or not at all, because a PodGroup of the cluster says so."""

from __future__ import annotations

from msgspec import Struct


class GangKey(Struct, frozen=True, gc=False, cache_hash=True):
    """The PodGroup that a pod names; it need not exist."""

    api: str  # group of its API: there are two, and a name may exist in both
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"PodGroup {self.namespace}/{self.name}"


class Gang(Struct, frozen=True, gc=False):
    """A PodGroup, as last seen."""

    key: GangKey
    min_count: int = 1  # pods that must be on nodes before any of them starts; with 1 each starts by itself
