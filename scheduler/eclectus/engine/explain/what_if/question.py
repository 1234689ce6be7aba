"""A question: what would be different if nodes, pods on them or the pod itself were other than they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eclectus.framework import Place
from eclectus.model.objects import Node, Task

NodeEdit = Callable[[Node], Node]
"""What would be other about a node. Raises QuestionError where the node has not what it changes."""

TaskEdit = Callable[[Task], Task]
"""The same of the pod that is asked about."""


class ChangeNode(NamedTuple):
    """A node would be another."""

    node: str  # name
    edits: Sequence[NodeEdit]


class AddNodes(NamedTuple):
    """There would be more nodes like one that exists, each changed in the same way."""

    like: str  # name
    number: int
    edits: Sequence[NodeEdit]


class DeletePod(NamedTuple):
    """A pod on a node would be gone."""

    namespace: str
    name: str


class ChangeTask(NamedTuple):
    """The pod that is asked about would be another."""

    edits: Sequence[TaskEdit]


Change = ChangeNode | AddNodes | DeletePod | ChangeTask


@dataclass(frozen=True)
class Question:
    """The changes, in the order in which they are made.

    `words`: the changes as they were asked for. `policy`: who places the pod then, None for the policy of its
    profile.
    """

    changes: tuple[Change, ...] = ()
    words: tuple[str, ...] = ()
    policy: Place | None = None

    @property
    def is_about_nodes(self) -> bool:
        """Whether it names a node: its answer says whether there is one, and what it has."""
        return any(isinstance(each, ChangeNode | AddNodes) for each in self.changes)

    @property
    def deleted_pods(self) -> tuple[DeletePod, ...]:
        """The pods that would be gone: the answer says whether they exist."""
        return tuple(each for each in self.changes if isinstance(each, DeletePod))

    @property
    def changes_the_task_alone(self) -> bool:
        """Whether nodes and other pods are as they are."""
        return all(isinstance(each, ChangeTask) for each in self.changes)
