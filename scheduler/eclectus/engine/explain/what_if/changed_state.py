"""A copy of the engine's state with the changes of a question; the state itself stays as it is.

Nodes and the pods on them are copied where a change is about them: tens of milliseconds for 15,000 nodes with
150,000 pods. All else is shared, and only read: queues, back-offs, budgets, and what is learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from random import Random

from msgspec.structs import replace

from eclectus.cluster.nodes import Cluster
from eclectus.engine.explain.what_if.known_speeds import KnownSpeeds
from eclectus.engine.explain.what_if.question import (
    AddNodes,
    ChangeNode,
    ChangeTask,
    DeletePod,
    NodeEdit,
    Question,
)
from eclectus.engine.placed_pods import PlacedPods
from eclectus.engine.state import State
from eclectus.feasibility.class_cache import ClassCache
from eclectus.feasibility.topology.pod_preferences import HOSTNAME
from eclectus.model.errors import QuestionError
from eclectus.model.objects import Node, Task

NODES_NAMED_MOST = 8  # in the message for a node that there is not


def changed(state: State, task: Task, question: Question, now: float) -> tuple[State, Task]:
    """The state and the pending task with the changes. `now` in seconds. Raises QuestionError."""
    cluster, placed = state.cluster, state.placed
    if not question.changes_the_task_alone:
        cluster = state.cluster.copy()
        placed = state.placed.copy(cluster)
    like: dict[int, int] = {}
    for change in question.changes:
        match change:
            case ChangeTask(edits):
                for edit in edits:
                    task = edit(task)
            case ChangeNode(name, edits):
                _set_node(cluster, _node(cluster, name), edits)
            case AddNodes():
                like |= _add_nodes(cluster, change)
            case DeletePod(namespace, name):
                _delete(placed, namespace, name)
    return _with(state, cluster, placed, like, now), task


def _with(state: State, cluster: Cluster, placed: PlacedPods, like: dict[int, int], now: float) -> State:
    found, view = copy(state), state.view
    found.cluster, found.placed, found.now = cluster, placed, now
    found.learn = KnownSpeeds(state.learn, cluster.capacity, like)
    found.view = replace(
        view,
        now=now,
        cluster=cluster,
        placed=placed,
        classes=ClassCache(cluster),  # those of the state would be brought up to date
        learn=found.learn,
        rng=Random(0),  # a draw from the engine's own would change what it draws next
        pricing=None if view.pricing is None else view.pricing.copy(cluster),
    )
    return found


# -- changes ---------------------------------------------------------------------------------------


def _node(cluster: Cluster, name: str) -> Node:
    node = cluster.node(name)
    if node is None:
        raise QuestionError(f"there is no node {name!r}; {_known(cluster)}")
    return node


def _known(cluster: Cluster) -> str:
    names = sorted(cluster.rows)
    more = len(names) - NODES_NAMED_MOST
    listed = ", ".join(names[:NODES_NAMED_MOST]) or "none"
    return f"there are {listed}" + (f" and {more} more" if more > 0 else "")


def _set_node(cluster: Cluster, node: Node, edits: Sequence[NodeEdit]) -> int:
    for edit in edits:
        node = edit(node)
    return cluster.set_node(node)


def _add_nodes(cluster: Cluster, change: AddNodes) -> dict[int, int]:
    """Row of each new node -> row of the node that it is like."""
    model, like, number = _node(cluster, change.like), dict[int, int](), 0
    for _ in range(change.number):
        while (name := f"{change.like}-like-{number}") in cluster.rows:
            number += 1
        row = _set_node(cluster, _named(model, name), change.edits)
        like[row] = other = cluster.rows[change.like]
        cluster.volumes.resemble(row, other)
    return like


def _named(node: Node, name: str) -> Node:
    """The same node by another name, which its label says too."""
    labels = tuple((key, name if key == HOSTNAME else value) for key, value in node.labels)
    return replace(node, name=name, labels=labels)


def _delete(placed: PlacedPods, namespace: str, name: str) -> None:
    found = placed.find(namespace, name)
    if found is None:
        raise QuestionError(f"there is no pod {namespace}/{name} that holds room on a node")
    placed.remove(found.uid)
