"""What watches have told of nodes and profiles: a cache. Before anything is done by it, it is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from . import objects
from .observed import Node, Profile

T = TypeVar("T", Node, Profile)


class Picture:
    """Nodes and profiles by name."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.profiles: dict[str, Profile] = {}

    def node(self, found: Mapping[str, Any], *, gone: bool) -> None:
        """A node as last seen. Raises objects.ShapeError."""
        _keep(self.nodes, objects.read(found, Node), gone=gone)

    def profile(self, found: Mapping[str, Any], *, gone: bool) -> None:
        """A profile as last seen. Raises objects.ShapeError."""
        _keep(self.profiles, objects.read(found, Profile), gone=gone)


def _keep(known: dict[str, T], one: T, *, gone: bool) -> None:
    if gone:
        known.pop(one.metadata.name, None)
    else:
        known[one.metadata.name] = one
