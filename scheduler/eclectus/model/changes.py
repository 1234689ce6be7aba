"""What would be other than it is, of nodes, of pods on them, or of the pod that a question is about."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

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
