"""What can happen to the core. Levels, not edges: a late or repeated event does no harm."""

from __future__ import annotations

from msgspec import Struct

from eclectus.model.learned import LearnedNode
from eclectus.model.objects import Node, Task


class NodeSeen(Struct, frozen=True, gc=False, tag=True):
    """A node is there, as given."""

    node: Node


class NodeGone(Struct, frozen=True, gc=False, tag=True):
    """A node is there no more."""

    name: str


class TaskSeen(Struct, frozen=True, gc=False, tag=True):
    """A pod is there, as given: ours or another scheduler's, pending, bound or ended."""

    task: Task


class TaskGone(Struct, frozen=True, gc=False, tag=True):
    """A pod is there no more."""

    uid: str


class BindConfirmed(Struct, frozen=True, gc=False, tag=True):
    """The API server has bound the pod to the node."""

    uid: str
    node: str


class BindRefused(Struct, frozen=True, gc=False, tag=True):
    """The pod is surely not bound to the node: refused, or found unbound after an uncertain answer."""

    uid: str
    node: str
    reason: str


class LoadSeen(Struct, frozen=True, gc=False, tag=True):
    """How busy nodes have been measured to be; of nodes that are not named nothing is known.

    `loads`: (node, share of its processors in use, 0..1).
    """

    loads: tuple[tuple[str, float], ...]


class NodeRecalled(Struct, frozen=True, gc=False, tag=True):
    """What was known of a node once, here or in another process."""

    learned: LearnedNode


class Resumed(Struct, frozen=True, gc=False, tag=True):
    """The picture is complete and we lead: decide from here on."""


class Paused(Struct, frozen=True, gc=False, tag=True):
    """The picture is incomplete or another leads: go on watching, decide nothing."""


Event = (
    NodeSeen
    | NodeGone
    | TaskSeen
    | TaskGone
    | BindConfirmed
    | BindRefused
    | LoadSeen
    | NodeRecalled
    | Resumed
    | Paused
)
